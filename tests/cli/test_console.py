"""What reaches the terminal, and what happens when there is none."""

import os
import subprocess
import sys
import warnings

import pytest
from rich.table import Table
from rich.text import Text

from idfsmec.cli import _console
from idfsmec.cli._run import warn_of_open_cluster
from tests.trust.conftest import make_table

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return make_table(tmp_path_factory.mktemp("table") / "small.parquet")


def test_names_cannot_steer_the_terminal(capsys):
    evil = "Fp1\x1b[2J\x07\x9b31m"
    rows = Table()
    rows.add_column(evil)
    for cell in (evil, Text(evil), _console.plain(evil)):
        rows.add_row(cell)
    _console.console.print(rows)
    _console.console.print(Text(evil))
    _console.say(evil)
    _console.print_error(evil)
    captured = capsys.readouterr()
    for said in (captured.out, captured.err):
        assert not {"\x1b", "\x07", "\x9b"} & set(said)
        assert r"Fp1\x1b[2J\x07\x9b31m" in said


def test_a_warning_is_a_line_and_what_libraries_tell_programmers_is_not(capsys):
    with _console.warnings_as_lines():
        warnings.warn("gaps go [with] the label", stacklevel=1)
        warnings.warn("call another function", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: gaps go [with] the label\n"


@pytest.mark.parametrize(
    ("address", "open_to_all"),
    [
        ("tcp://cluster:8786", True),
        ("10.0.0.7:8786", True),
        ("tls://cluster:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("localhost:8786", False),
        (None, False),
    ],
)
def test_a_scheduler_that_obeys_everybody_is_warned_of(address, open_to_all, capsys):
    warn_of_open_cluster(address)
    assert ("can read the tables and run programs there" in capsys.readouterr().err) == open_to_all


def start(table, out, **streams):
    command = [sys.executable, "-m", "idfsmec", "select", str(table), "-o", str(out)]
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, **streams)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_that_leaves_early_costs_nothing(table, tmp_path, name):
    reading, writing = os.pipe()
    os.close(reading)  # as after `| head -1`
    try:
        with start(table, tmp_path / "ranking.csv", **{name: writing}) as process:
            assert process.wait() == 0
    finally:
        os.close(writing)
    assert (tmp_path / "ranking.csv").exists()


@pytest.mark.parametrize("number", [1, 2])
def test_a_stream_that_was_closed_before_costs_nothing(table, tmp_path, number):
    with start(table, tmp_path / "ranking.csv", preexec_fn=lambda: os.close(number)) as process:
        assert process.wait() == 0
    assert (tmp_path / "ranking.csv").exists()
