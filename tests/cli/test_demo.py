"""The demo, once, the whole way from signals to the page, watched by a hook of the interpreter.

No socket is to be had, and every rename is written down, in the worker processes, too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from idfsmec.evaluation import Results
from idfsmec.table import FeatureTable

SOURCE_TREE = Path(__file__).parents[2] / "src"
# Python runs this before anything else, in every process that inherits PYTHONPATH.
WATCH = """
import json, os, sys

def watch(event, arguments):
    if event.startswith("socket."):
        note(event, repr(arguments))
        raise OSError("there are no sockets")
    if event == "os.rename":
        note(event, os.fspath(arguments[1]))

def note(*words):
    place = os.open(os.environ["WATCHED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(place, (json.dumps(words) + "\\n").encode())
    os.close(place)

sys.addaudithook(watch)
"""
# The demo with as little as shows that every step is taken.
SMALL_DEMO = """
import sys
from idfsmec.cli import app
demo = sys.modules["idfsmec.cli.demo"]
demo.QUICK = (
    {"n_subjects": 8, "n_channels": 19, "duration": 20.0},
    {"methods": ("IDFS-MEC", "ANOVA F"), "rates": (0.3,), "k": (5,), "folds": 2, "resamples": 20},
)
app()
"""
# SQLite keeps these whole by its own journal.
KEPT_BY_SQLITE = {"store.sqlite", "store.lock"}


def watched(tmp_path, program, *arguments):
    """Run a program under the hook; what it ended with, and what the hook saw."""
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    log = tmp_path / "log"
    log.touch()
    place = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE_TREE)]),
        "WATCHED": str(log),
    }
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | place,
        capture_output=True,
        text=True,
    )
    return ended, [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("demo")
    command = ["demo", "--quick", "--out", str(tmp_path / "out")]
    ended, seen = watched(tmp_path, SMALL_DEMO, *command)
    assert ended.returncode == 0, ended.stderr
    return tmp_path / "out", seen, ended.stdout


@pytest.mark.long
def test_the_demo_goes_from_a_cohort_to_the_report(demo):
    out, _, said = demo
    table = FeatureTable.read(out / "cohort.parquet")
    assert len(table.channels) == 19
    assert not table.observed.to_numpy().all()
    assert len(pd.read_csv(out / "ranking.csv")) == 19 * 18
    results = Results.read(out)
    assert set(results.scores["method"]) == {"IDFS-MEC", "ANOVA F"}
    assert (out / "report.html").stat().st_size > 10_000
    assert "report.html" in said
    found = results.resampling["cohort"]
    assert (found["n_resamples"], len(found["frequency"])) == (20, 19 * 18)


@pytest.mark.long
def test_the_demo_with_its_workers_asks_for_no_socket(demo):
    _, seen, _ = demo
    assert [words for words in seen if words[0] != "os.rename"] == []


@pytest.mark.long
def test_every_file_of_the_demo_was_written_beside_and_renamed(demo):
    out, seen, _ = demo
    written = {path for path in out.rglob("*") if path.is_file()}
    renamed = {Path(place) for event, place in seen if event == "os.rename"}
    assert {path.name for path in written - renamed} <= KEPT_BY_SQLITE
    assert {"cohort.parquet", "ranking.csv", "results.csv", "report.html"} <= {
        path.name for path in renamed
    }


def test_the_hook_sees_and_refuses_a_socket(tmp_path):
    ended, seen = watched(tmp_path, "import socket; socket.create_connection(('localhost', 9))")
    assert "there are no sockets" in ended.stderr
    assert seen[0][0] == "socket.getaddrinfo"
