"""What a run says about how long it takes, and in which order it works."""

import pytest

from idfsmec.cli._run import RunningMeans
from idfsmec.evaluation import Method, Protocol, accuracy
from idfsmec.evaluation.forecast import Plan, Stopwatch, in_order
from idfsmec.evaluation.sanity import AnovaF, RandomOrder
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.units import UnitOutcome, plan_folds

from .cohorts import make_cohort

FAST, SLOW = Method("F", AnovaF()), Method("trial", RandomOrder(), slow=True)
PROTOCOL = Protocol(rates=[0.1, 0.3], n_splits=2, ks=[2], tuning="grid")


@pytest.fixture(scope="module")
def units():
    return list(plan_folds([TableArrays.of("clinic", make_cohort())], [SLOW, FAST], PROTOCOL))


def test_slow_methods_come_last_and_rates_one_after_the_other(units):
    ordered = in_order(units)
    assert [unit.method.name for unit in ordered] == ["F"] * 4 + ["trial"] * 4
    assert [unit.rate for unit in ordered] == [0.1, 0.1, 0.3, 0.3] * 2


def test_what_is_left_is_counted_by_method_with_what_its_units_took(units):
    watch = Stopwatch(Plan.of(units, 2, {"clinic": {"F": 100.0}}))
    assert watch.plan.seconds_left() == pytest.approx(4 * 100 / 2)
    assert watch.plan.unknown == ("trial",)
    for unit in units[:4]:  # two of each
        watch.add(unit, UnitOutcome(unit.key, seconds=10.0))
    assert watch.plan.unknown == ()
    assert watch.plan.seconds_left() == pytest.approx((2 * 10 + 2 * 10) / 2)
    assert watch.paces({"other": {"F": 1.0}}) == {
        "other": {"F": 1.0},
        "clinic": {"F": 10.0, "trial": 10.0},
    }


def test_the_next_run_knows_how_long_it_takes(tmp_path):
    events = []
    for rates in ([0.1], [0.1, 0.3]):
        accuracy(
            make_cohort(),
            tmp_path,
            methods=[FAST],
            protocol=PROTOCOL.with_changes(rates=rates),
            n_jobs=1,
            progress=lambda event: events.append(event) if event.item is None else None,
        )
    plans = [event.plan for event in events if event.task == "accuracy"]
    assert plans[0].unknown == ("F",)
    assert plans[1].unknown == ()
    assert plans[1].seconds_left() > 0
    assert sum(plans[1].units.values()) == 2  # the others are done


def test_the_run_says_what_it_is_about_to_do():
    means = RunningMeans()
    units = {("t", "mRMR"): 30, ("t", "PS-NSGA"): 30}
    assert means.begin(Plan(units, 2, {}, ("PS-NSGA",))) == (
        "mRMR 30, PS-NSGA 30 units; how long is known when the first units have ended; PS-NSGA "
        "can take minutes a unit and comes last; --methods leaves it out"
    )
    known = Plan(units, 2, {("t", "mRMR"): 20.0})
    assert means.left(known) == "about 5 min left and whatever PS-NSGA will take"
