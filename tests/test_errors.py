"""Typed errors: they carry what happened, and go whole from process to process."""

import pickle

import pytest

from idfsmec.errors import (
    ArgumentError,
    DuplicateRecordingsError,
    ExistingFileError,
    InputError,
    RecordingError,
    UnexpectedRecordingError,
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
