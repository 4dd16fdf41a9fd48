"""What a terminal or a log says while units end."""

import pytest
from rich.console import Console

from idfsmec.cli._run import RunningMeans
from idfsmec.evaluation import Protocol
from idfsmec.evaluation.store import TaskResult
from idfsmec.evaluation.tasks import TaskOutcome, plan_folds
from idfsmec.prediction import Method
from idfsmec.prediction.pipeline import TableArrays
from idfsmec.prediction.sanity import AnovaF
from tests.evaluation.cohorts import make_cohort


def unit_of(name):
    arrays = TableArrays.of("clinic", make_cohort())
    protocol = Protocol(metric="accuracy")
    return next(iter(plan_folds([arrays], [Method(name, AnovaF())], protocol)))


@pytest.fixture(scope="module")
def unit():
    return unit_of("F")


def ended(*values, chosen=True):
    rows = [{"accuracy": value, "chosen": chosen} for value in values]
    return TaskOutcome("key", TaskResult(rows, [0.1] * len(rows)))


def test_means_are_those_of_chosen_rows_and_failures_are_counted_and_named(unit):
    means = RunningMeans()
    assert means.update((unit, ended(0.5))) is None
    assert means.update((unit, ended(0.7))) is None
    remark = means.update((unit, TaskOutcome("key", error="Traceback\nValueError: no data")))
    assert remark.startswith("failed: table clinic, pattern random")
    assert remark.endswith("ValueError: no data")
    assert means.sentence() == (
        "ended: F (0% missing, fold 1, 0.0 s), F (0% missing, fold 1, 0.0 s); 1 failed; "
        "mean accuracy %: F 60.0"
    )
    assert means.sentence() == "1 failed; mean accuracy %: F 60.0"


def test_a_unit_without_a_chosen_row_counts_with_the_mean_of_all(unit):
    means = RunningMeans()
    means.update((unit, ended(0.2, 0.4, chosen=False)))
    assert "F 30.0" in means.sentence()


def test_a_terminal_gets_a_table(unit):
    means = RunningMeans()
    means.update((unit, ended(0.5)))
    console = Console(width=100)
    with console.capture() as shown:
        console.print(means.picture())
    assert "mean accuracy %" in shown.get()
    assert "50.0" in shown.get()


def test_a_name_with_brackets_is_no_markup():
    means = RunningMeans()
    means.update((unit_of("F [red]"), ended(0.5)))
    console = Console(width=100)
    with console.capture() as shown:
        console.print(means.picture())
    assert "F [red]" in shown.get()


def test_recordings_that_end_before_the_units_have_no_score():
    means = RunningMeans()
    assert means.update(object()) is None
    assert means.sentence() == "0 failed"
