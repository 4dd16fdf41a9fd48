"""Progress as people see it: bars on a terminal, lines in a log."""

import io

import pytest

from idfsmec.cli import _console, _progress
from idfsmec.progress import Progress


class Digest:
    """Counts pieces; those called bad deserve a line."""

    def __init__(self):
        self.n = 0

    def begin(self, plan):
        return f"plan: {plan}"

    def update(self, item):
        self.n += 1
        return f"failed: {item}" if item.startswith("bad") else None

    def picture(self):
        return f"pieces so far: {self.n}"

    def sentence(self):
        return f"{self.n} pieces"

    def left(self, plan):
        return f"about {plan} left"


EVENTS = [
    Progress("units", 0, 3, plan="3 h"),
    Progress("units", 1, 3, "good\x1b[2J", plan="3 h"),
    Progress("units", 2, 3, "bad [bold]\x1b[2J", plan="3 h"),
]


@pytest.fixture
def show(monkeypatch):
    """Show events on a terminal or in a log; give what was written."""

    def do(events, terminal=False, **options):
        written = io.StringIO()
        console = _console._Console(
            file=written, force_terminal=terminal, width=150, highlight=False
        )
        monkeypatch.setattr(_progress, "error_console", console)
        with _progress.shown(**options) as listener:
            for event in events:
                listener(event)
        return written.getvalue()

    return do


@pytest.mark.parametrize("terminal", [True, False])
def test_plan_failures_and_sums_are_said(show, terminal):
    said = show(EVENTS, terminal, digest=Digest(), describe=str)
    assert "plan: 3 h" in said
    assert r"failed: bad [bold]\x1b[2J" in said
    assert "\x1b[2J" not in said
    assert ("pieces so far: 2" if terminal else "2 pieces") in said


def test_a_terminal_has_one_bar_for_each_task_with_its_last_piece(show):
    said = show([*EVENTS, Progress("folds", 5, 5, "fold 5")], terminal=True, describe=str)
    last = said.splitlines()[-3:-1]  # the very last shows the cursor again
    assert "units" in last[0]
    assert "2/3" in last[0]
    assert "folds" in last[1]
    assert "5/5" in last[1]
    assert "fold 5" in last[1]


def test_with_a_title_all_tasks_are_one_bar(show):
    said = show([Progress("a", 1, 2), Progress("b", 2, 2)], terminal=True, title="features")
    last = said.splitlines()[-2]
    assert "features" in last
    assert "2/2" in last
    assert not show([], title="nothing yet")


def test_a_log_says_what_there_is_to_do_and_in_the_end_how_far_it_came(show):
    first, *_, last = show(EVENTS[:2], describe=str).splitlines()
    assert first == "units: 3 of 3 to do"
    assert last.startswith("units: 1 of 3, ")
    assert last.endswith(r" s left; good\x1b[2J")


def test_a_log_has_the_time_that_the_plan_knows(show):
    assert "units: 2 of 3, about 3 h left; 2 pieces" in show(EVENTS, digest=Digest())


def test_a_log_says_now_and_then_how_far_it_is_and_nothing_twice(show, monkeypatch):
    monkeypatch.setattr(_progress, "_LOG_EVERY_SECONDS", 0.0)
    lines = show([Progress("reading", 0), Progress("reading", 4), Progress("reading", 9)])
    assert lines.split() == ["reading:", "0", "reading:", "4", "reading:", "9"]


def test_who_wants_quiet_hears_nothing():
    with _progress.shown("features", quiet=True) as listener:
        assert listener is None
