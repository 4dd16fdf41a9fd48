"""Every bad input ends with exit code 2 or a clean skip, and says which file and why."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.table import FeatureTable

from . import manifests, more, recordings, releases, tables
from .case import ACCEPTED, CLEAR, EITHER, EMPTY, REFUSED, SKIPPED

pytestmark = pytest.mark.slow

CASES = [
    *recordings.CASES,
    *releases.CASES,
    *manifests.CASES,
    *tables.CASES,
    *more.CASES,
]
# The whole corpus is a long trial; every seventh case, of each format and kind of damage, is not.
MARKED = [
    pytest.param(case, marks=[pytest.mark.long] if number % 7 else [], id=case.name)
    for number, case in enumerate(CASES)
]


@dataclass
class Run:
    code: int
    said: str
    output: Path


@pytest.fixture
def run(tmp_path):
    """Run a command in the process, with its output in a folder of its own."""

    def do(arguments, name="out"):
        command = arguments[0]
        output = tmp_path / name / ("table.parquet" if command == "features" else "ranking.csv")
        result = CliRunner().invoke(app, [*arguments, "-o", str(output)])
        said = " ".join((result.stdout + " " + result.stderr).split())
        assert "Traceback" not in said
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return Run(result.exit_code, said, output)

    return do


def test_the_corpus_has_350_cases_and_each_its_name():
    assert len(CASES) >= 350
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", MARKED)
def test_bad_input_is_named_and_nothing_is_half_written(case, tmp_path, run):
    folder = tmp_path / "input"
    folder.mkdir()
    arguments = case.build(folder)
    before = _listing(folder)
    ran = run(arguments)
    if case.ending in (EITHER, CLEAR) and ran.code == 0:
        _check_whole(ran)
    elif case.ending == ACCEPTED:
        assert ran.code == 0, ran.said
        _check_said(case, ran)
        _check_whole(ran)
    elif case.ending == EMPTY:
        assert ran.code == 1, ran.said
        _check_said(case, ran)
        assert "bad" not in set(_check_whole(ran).subjects)
    else:
        assert ran.code == 2, ran.said
        assert "error: " in ran.said
        _check_said(case, ran)
        _check_nothing_left(ran)
    if case.ending in (SKIPPED, EMPTY) or _may_be_skipped(case, arguments, ran):
        again = run([*arguments, "--on-error", "skip"], "again")
        assert again.code == 0, again.said
        _check_said(case, again)
        assert "bad" not in set(_check_whole(again).subjects)
    assert _listing(folder) == before


def _may_be_skipped(case, arguments, ran):
    return case.ending == EITHER and ran.code == 2 and arguments[0] == "features"


def _check_said(case, ran):
    for words in case.said:
        assert words in ran.said


def _check_nothing_left(ran):
    """Finished recordings may wait for the next try; nothing else is there."""
    left = [path for path in ran.output.parent.rglob("*") if path.is_file()]
    assert [path for path in left if path.suffix != ".npz"] == []


def _check_whole(ran):
    """One file, which can be read, and nothing beside it but why its cells are empty."""
    why = f"{ran.output.name}.reasons.tsv.gz"
    assert {path.name for path in ran.output.parent.iterdir()} - {why} == {ran.output.name}
    if ran.output.suffix == ".csv":
        return pd.read_csv(ran.output)
    return FeatureTable.read(ran.output)


def _listing(folder):
    # mne-bids locks sidecars while it reads, which touches their folder.
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*") if not path.is_dir()}


def test_endings_are_all_in_use():
    assert {case.ending for case in CASES} == {*(REFUSED, SKIPPED, ACCEPTED, EMPTY, EITHER, CLEAR)}
