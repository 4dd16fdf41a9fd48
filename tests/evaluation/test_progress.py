import io

import pytest
from rich.console import Console

from idfsmec.evaluation import Contestant, Protocol, _progress
from idfsmec.evaluation._fold_data import TableArrays
from idfsmec.evaluation._progress import LiveReporter, LogReporter, RunningMeans, make_reporter
from idfsmec.evaluation._sanity import AnovaF
from idfsmec.evaluation._tuning import UnitResult
from idfsmec.evaluation._units import Outcome, plan_units

from .cohorts import make_cohort


@pytest.fixture(scope="module")
def unit():
    arrays = TableArrays.of("clinic", make_cohort())
    return next(iter(plan_units([arrays], [Contestant("F", AnovaF())], Protocol(), "1")))


def good(value, chosen=True):
    return Outcome("key", UnitResult([{"accuracy": value, "chosen": chosen}], [0.1]))


def test_means_are_those_of_chosen_rows_and_failures_are_counted(unit):
    means = RunningMeans("accuracy")
    for outcome in (good(0.5), good(0.7), Outcome("key", error="boom")):
        means.update(unit, outcome)
    assert means.lines() == [("F", "2", "60.0", "1")]
    assert means.n_failed == 1


def test_a_unit_without_a_chosen_row_counts_with_the_mean_of_all(unit):
    means = RunningMeans("accuracy")
    rows = [{"accuracy": value, "chosen": False} for value in (0.2, 0.4)]
    means.update(unit, Outcome("key", UnitResult(rows, [0.1, 0.1])))
    assert means.lines()[0][2] == "30.0"


def test_the_log_names_failures_and_ends_with_a_summary(unit):
    text = io.StringIO()
    with LogReporter(Console(file=text, width=200), "accuracy", 2, "accuracy") as reporter:
        reporter.update(unit, Outcome("key", error="Traceback\nValueError: no data"))
        reporter.update(unit, good(0.75))
    said = text.getvalue().splitlines()
    assert said[0] == "accuracy: 2 units to do"
    assert "failed: table clinic, pattern random" in said[1]
    assert said[1].endswith("ValueError: no data")
    assert "2/2 units, 1 failed, 0 s left; mean accuracy %: F 75.0" in said[2]
    assert len(said) == 3


def test_a_terminal_shows_a_bar_with_the_time_left_and_the_means(unit):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=120, color_system=None)
    with LiveReporter(console, "accuracy", 2, "accuracy") as reporter:
        reporter.update(unit, good(0.5))
        reporter.update(unit, good(0.6))
    last = text.getvalue()
    assert "55.0" in last
    assert "2/2" in last
    assert "left" in last


def test_the_reporter_follows_what_standard_error_is(monkeypatch, capsys):
    assert type(make_reporter(True, "x", 3, "accuracy")).__name__ == "LogReporter"
    assert type(make_reporter(False, "x", 3, "accuracy")).__name__ == "SilentReporter"
    monkeypatch.setattr(_progress, "Console", lambda file: Console(file=file, force_terminal=True))
    assert type(make_reporter(True, "x", 3, "accuracy")).__name__ == "LiveReporter"
    assert capsys.readouterr().out == ""
