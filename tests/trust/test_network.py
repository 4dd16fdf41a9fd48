"""The whole way from signals to the page, with no socket to be had and every rename written down.

A hook of the interpreter sees all of it, in the worker processes, too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
from importlib import import_module
from idfsmec.cli import app
demo = import_module("idfsmec.cli.demo")
demo.QUICK = demo.Size(8, 20.0, (0.3,), 2, (5,), ("IDFS-MEC", "ANOVA F"))
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
    command = ["demo", "--quick", "--jobs", "2", "--out", str(tmp_path / "out")]
    ended, seen = watched(tmp_path, SMALL_DEMO, *command)
    assert ended.returncode == 0, ended.stderr
    return tmp_path / "out", seen


def test_the_demo_with_its_workers_asks_for_no_socket(demo):
    out, seen = demo
    assert (out / "report.html").is_file()
    assert [words for words in seen if words[0] != "os.rename"] == []


def test_every_file_of_the_demo_was_written_beside_and_renamed(demo):
    out, seen = demo
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
