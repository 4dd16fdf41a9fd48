"""Reports by several processes: the same files as by one, also when helpers are no help."""

import shutil
import sys

import pytest

from idfsmec.errors import ArgumentError
from idfsmec.report import write_report
from tests.report.make_results import simulate, write_results

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a report by one process, and what that one consists of."""
    names = tuple(f"E{number}" for number in range(4))
    folder = write_results(tmp_path_factory.mktemp("one"), {"t": simulate(names)}, ("cost",))
    write_report(folder)
    return folder, contents(folder)


def contents(folder):
    """Bytes of the page and of all figures."""
    files = [folder / "report.html", *sorted((folder / "figures").iterdir())]
    return {path.name: path.read_bytes() for path in files}


def drawn_anew(written, folder, n_jobs):
    shutil.copytree(written, folder, ignore=shutil.ignore_patterns("figures", "report.html"))
    here = []
    write_report(folder, n_jobs=n_jobs, progress=lambda one: here.append(one.item))
    return contents(folder), list(filter(None, here))


def test_two_processes_write_the_files_of_one(written, tmp_path):
    folder, expected = written
    found, here = drawn_anew(folder, tmp_path / "two", n_jobs=2)
    assert found == expected
    assert "ranks" not in here  # the last of them: by the other process


def test_a_helper_that_does_not_start_is_not_needed(written, tmp_path, monkeypatch):
    folder, expected = written
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    found, here = drawn_anew(folder, tmp_path / "two", n_jobs=2)
    assert found == expected
    assert here[-1] == "ranks"


def test_what_a_broken_helper_was_asked_for_is_drawn_here(written, tmp_path, monkeypatch):
    folder, expected = written
    monkeypatch.setattr(sys, "path", [])  # it finds nothing to import
    found, here = drawn_anew(folder, tmp_path / "two", n_jobs=3)
    assert found == expected
    assert "ranks" in here


def test_a_number_of_processes_is_a_number(written):
    with pytest.raises(ArgumentError, match="n_jobs"):
        write_report(written[0], overwrite=True, n_jobs=0)
