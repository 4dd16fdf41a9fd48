"""Typed errors: they carry what happened, and go whole from process to process."""

import pickle
import sys

import pytest

from idfsmec.errors import (
    ArgumentError,
    DuplicateRecordingsError,
    ExistingFileError,
    InputError,
    RecordingError,
    UnexpectedRecordingError,
    without_folders,
)

ERRORS = [
    InputError("a column is missing."),
    ArgumentError("n_jobs=0: give 1 or more.", argument="n_jobs"),
    ExistingFileError("table.parquet"),
    DuplicateRecordingsError("twice."),
    RecordingError("a.edf: cut short.", argument="on_error"),
    UnexpectedRecordingError("a.edf: oh."),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_worker_process_arrives_as_it_was(error):
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
    assert arrived.argument == getattr(error, "argument", None)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/home/ann lee/eeg/table.parquet", "table.parquet"),
        ("--out=/home/ann/out", "--out=out"),
        (r"C:\Users\ann\table.csv", "table.csv"),
        ("~/eeg/table.csv", "table.csv"),
        ("/home/ann/a.csv,/home/ann/b.csv", "a.csv,b.csv"),
        ('  File "/home/ann/x.py", line 3, in f', '  File "x.py", line 3, in f'),
        ("ratio = a / b and/or 3//2", "ratio = a / b and/or 3//2"),
        ("IDFS-MEC,ANOVA F", "IDFS-MEC,ANOVA F"),
    ],
)
def test_folders_of_users_are_left_out(text, short):
    assert without_folders(text) == short


def test_folders_stay_with_debug(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["idfsmec", "--debug"])
    assert without_folders("/home/ann/table.csv") == "/home/ann/table.csv"
