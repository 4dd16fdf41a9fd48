"""Reports by several processes: the same files as by one, also when helpers are no help."""

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings

import pytest

from idfsmec._system import is_running
from idfsmec.errors import ArgumentError
from idfsmec.report import _helpers, figures, write_report
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
    monkeypatch.setattr(sys, "platform", "one that makes no copies")
    found, here = drawn_anew(folder, tmp_path / "two", n_jobs=2)
    assert found == expected
    assert here[-1] == "ranks"


@pytest.mark.parametrize("trouble", [Exception("broken"), UserWarning("odd"), None])
def test_what_a_helper_has_trouble_with_is_drawn_here(written, tmp_path, monkeypatch, trouble):
    """It breaks, it has something to say, or it is killed."""
    folder, expected = written
    parent, draw = os.getpid(), figures.draw_place

    def draw_only_here(*place):
        if os.getpid() == parent:
            return draw(*place)
        if trouble is None:
            os.kill(os.getpid(), signal.SIGKILL)
        if isinstance(trouble, UserWarning):
            warnings.warn(trouble, stacklevel=1)
            return draw(*place)
        raise trouble

    monkeypatch.setattr(figures, "draw_place", draw_only_here)
    found, here = drawn_anew(folder, tmp_path / "two", n_jobs=3)
    assert found == expected
    assert "ranks" in here


def test_one_who_does_not_answer_is_given_up(monkeypatch):
    parent = os.getpid()

    def draw(place):
        if os.getpid() != parent:
            time.sleep(1000)
        return place

    monkeypatch.setattr(_helpers, "_PATIENCE", 0.2)
    with _helpers.Sharing("abc", draw, 1) as sharing:
        assert sharing.finish(lambda place, done: None) == ["a", "b", "c"]


@pytest.mark.skipif(sys.platform != "linux", reason="no copies of processes")
def test_a_helper_ends_when_whoever_asks_is_killed():
    script = (
        "import os, signal, time; from idfsmec.report._helpers import Sharing\n"
        "with Sharing('ab', lambda place: os.getpid(), 1) as sharing:\n"
        "    time.sleep(0.5)\n"
        "    print(*sharing.finish(lambda place, done: None), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=False)
    assert ran.returncode == -signal.SIGKILL
    (helper,) = set(map(int, ran.stdout.split()))  # both, while the other slept
    deadline = time.monotonic() + 10
    while is_running(helper) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(helper)


def test_a_number_of_processes_is_a_number(written):
    with pytest.raises(ArgumentError, match="n_jobs"):
        write_report(written[0], overwrite=True, n_jobs=0)
