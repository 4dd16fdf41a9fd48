"""What reaches the terminal or a log, and what happens when there is neither."""

import io
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from rich.console import Console

from idfsmec.cli import console
from idfsmec.cli.benchmark import RunningMeans
from idfsmec.cli.options import check_cluster
from idfsmec.progress import Progress

EVIL, SHOWN = "Fp1\x1b[2J\x07\x9b31m", r"Fp1\x1b[2J\x07\x9b31m"


def test_results_and_errors_fit_80_columns_and_paths_stay_whole(capsys, monkeypatch):
    path = "/a/folder with spaces/" + 12 * "long/" + "ranking.csv"
    console.say("Stability of the selection on halves of the participants. " * 3)
    console.say("ranking:", path)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-1] == f"ranking: {path}"
    monkeypatch.setattr(console.console("stderr"), "width", 80)
    console.print_error(f"{12 * 'long/'}ranking.csv: exists already; " + 20 * "choose another ")
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].endswith("long/ranking.csv:")


def test_names_cannot_steer_the_terminal(capsys):
    console.show_frame(EVIL, pd.DataFrame({EVIL: [EVIL]}))
    console.say(EVIL)
    console.print_error(EVIL)
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert not {"\x1b", "\x07", "\x9b"} & set(text)
        assert SHOWN in text


def test_a_warning_is_a_line_and_what_libraries_tell_programmers_is_not(capsys):
    with console.warnings_as_lines():
        warnings.warn("missing channels [are] associated", stacklevel=1)
        warnings.warn("call another function", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: missing channels [are] associated\n"


@pytest.mark.parametrize(
    ("address", "open_to_all"),
    [
        ("tcp://cluster:8786", True),
        ("10.0.0.7:8786", True),
        ("tls://cluster:8786", False),
        ("tcp://127.0.0.1:8786", False),
        (None, False),
    ],
)
def test_a_scheduler_that_obeys_everybody_is_warned_of(address, open_to_all, capsys):
    check_cluster(address)
    assert ("read the tables and run programs there" in capsys.readouterr().err) == open_to_all


SAYING = """
import sys
from pathlib import Path
from idfsmec.cli import console
for _ in range(2000):
    console.say("results")
    console.print_error("remarks")
Path(sys.argv[1]).touch()
"""


@pytest.mark.parametrize("stream", ["stdout", "closed"])
def test_a_reader_that_leaves_early_or_is_not_there_costs_nothing(tmp_path, stream):
    out = tmp_path / "done"
    command = [sys.executable, "-c", SAYING, str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    reading, writing = os.pipe()
    os.close(reading)  # as after `| head -1`
    how = {"stdout": writing, "stderr": writing} if stream == "stdout" else {}
    how |= {"preexec_fn": lambda: os.closerange(1, 3)} if stream == "closed" else {}
    try:
        assert subprocess.run(command, env=environment, check=False, **how).returncode == 0
    finally:
        os.close(writing)
    assert out.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is a device of Linux")
@pytest.mark.parametrize("word", ["--help", "--version", "select --help"])
def test_help_into_a_full_disk_ends_in_one_line(word):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "idfsmec", *word.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, env=environment, check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


# --- progress -----------------------------------------------------------------------------


class Digest:
    """Counts tasks; those called bad deserve a line."""

    def __init__(self):
        self.n = 0

    def update(self, item):
        self.n += 1
        return f"failed: {item}" if item.startswith("bad") else None

    def sentence(self):
        return f"{self.n} ended"


EVENTS = [
    Progress("tasks", 0, 3),
    Progress("tasks", 1, 3, "good\x1b[2J"),
    Progress("tasks", 2, 3, "bad [bold]\x1b[2J"),
]


@pytest.fixture
def show(monkeypatch):
    """Show events on a terminal or in a log; give what was written."""

    def do(events, terminal=False, **options):
        written = io.StringIO()
        fake = Console(file=written, force_terminal=terminal, width=150)
        monkeypatch.setattr(console, "console", lambda stream: fake)
        with console.shown(**options) as listener:
            for event in events:
                listener(event)
        return written.getvalue()

    return do


@pytest.mark.parametrize("terminal", [True, False])
def test_the_number_of_tasks_failures_and_sums_are_printed(show, terminal):
    text = show(EVENTS, terminal, digest=Digest(), describe=str)
    for part in ("tasks: 3 of 3 to do", r"failed: bad [bold]\x1b[2J", "2 ended"):
        assert part in text
    assert "\x1b[2J" not in text


def test_a_terminal_has_one_bar_for_each_task_with_what_ended_last(show):
    text = show([*EVENTS, Progress("folds", 5, 5, "fold 5")], terminal=True, describe=str)
    first, second = text.splitlines()[-3:-1]  # the very last shows the cursor again
    assert "tasks" in first
    assert "2/3" in first
    assert all(part in second for part in ("folds", "5/5", "fold 5"))


def test_with_a_title_all_tasks_are_one_bar(show):
    text = show([Progress("a", 1, 2), Progress("b", 2, 2)], terminal=True, title="features")
    assert "features" in text.splitlines()[-2]
    assert "2/2" in text.splitlines()[-2]
    assert not show([], title="nothing yet")


def test_a_log_has_the_number_of_tasks_and_how_many_were_done(show):
    first, *_, last = show(EVENTS[:2], describe=str).splitlines()
    assert first == "tasks: 3 of 3 to do"
    assert last.startswith("tasks: 1 of 3, ")
    assert last.endswith(" s left")


def test_a_log_has_a_line_for_each_tenth_and_none_twice(show, monkeypatch):
    monkeypatch.setattr(console, "LOG_SECONDS", (0.0, 60.0))
    lines = show([Progress("reading", 0), Progress("reading", 4), Progress("reading", 9)])
    assert lines.split() == ["reading:", "0", "reading:", "4", "reading:", "9"]
    lines = show(Progress("tasks", done, 100) for done in range(101)).splitlines()
    assert len(lines) == 11
    assert [line.split()[1] for line in lines[1:4]] == ["10", "20", "30"]


def test_lines_of_a_log_are_short(show, monkeypatch):
    monkeypatch.setattr(console, "LOG_SECONDS", (0.0, 60.0))
    means = RunningMeans()
    events = [Progress("accuracy", n + 1, 40, ended(0.5, name=f"method {n}")) for n in range(40)]
    lines = show(events, digest=means).splitlines()
    assert max(map(len, lines)) <= 80
    assert "mean so far in %: method 0 50" in lines[-1]


def test_who_wants_quiet_hears_nothing(monkeypatch):
    monkeypatch.setattr(console.state, "quiet", True)
    with console.shown("features") as listener:
        assert listener is None


# --- running means ------------------------------------------------------------------------


def ended(*values, chosen=True, name="F", error=None):
    """A task of a fold and its result."""
    task = SimpleNamespace(
        method=SimpleNamespace(name=name),
        metric="accuracy",
        coordinates={"table": "clinic", "rate": 0.1, "fold": 0},
    )
    rows = [{"accuracy": value, "chosen": chosen} for value in values]
    return task, SimpleNamespace(rows=rows, error=error)


def test_means_are_those_of_chosen_rows_and_failures_are_counted_and_named():
    means = RunningMeans()
    assert means.update(ended(0.5)) is None
    assert means.update(ended(0.7)) is None
    assert means.update(object()) is None  # a recording, of which a table was made first
    remark = means.update(ended(error="Traceback\nValueError: no data"))
    assert remark == "failed: table clinic, rate 0.1, fold 0: ValueError: no data"
    assert means.sentence() == "1 failed; mean so far in %: F 60"


def test_a_task_without_a_chosen_row_counts_with_the_mean_of_all():
    means = RunningMeans()
    means.update(ended(0.2, 0.4, chosen=False))
    means.update(ended(0.9, name="best"))
    assert "best 90, F 30" in means.sentence()


def test_a_value_behind_its_name_stays_in_its_column(capsys):
    console.say("labels      " + "control (20 subjects, 240 epochs), " * 3)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("labels      control")
    assert second.startswith(12 * " ")
