"""What a run says about how long it takes, and in which order it works."""

from dataclasses import replace

import pandas as pd
import pytest

from idfsmec.cli._run import RunningMeans
from idfsmec.evaluation import Method, Protocol, accuracy, find_methods
from idfsmec.evaluation.forecast import Plan, Stopwatch, guess_seconds, in_order, probe_machine
from idfsmec.evaluation.sanity import AnovaF, RandomOrder
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.units import UnitOutcome, plan_folds

from .cohorts import make_cohort

FAST, SLOW = Method("F", AnovaF()), Method("trial", RandomOrder(), slow=True)
PROTOCOL = Protocol(rates=[0.1, 0.3], n_splits=2, ks=[2], tuning="grid")


@pytest.fixture(scope="module")
def units():
    return list(plan_folds([TableArrays.of("clinic", make_cohort())], [SLOW, FAST], PROTOCOL))


def names(units):
    return [unit.method.name for unit in units]


def test_all_methods_at_one_rate_before_the_next_and_slow_ones_last_in_it(units):
    ordered = in_order(units, {}, {})
    assert names(ordered) == ["F", "F", "trial", "trial"] * 2
    assert [unit.rate for unit in ordered] == [0.1] * 4 + [0.3] * 4
    assert [unit.fold for unit in ordered] == [0, 1] * 4


def test_cheap_methods_come_first_in_a_fold_and_dear_ones_after_the_folds():
    methods = [Method(name, AnovaF()) for name in ("dear", "second", "third", "first", "new")]
    seconds = {"first": 1.0, "second": 1.2, "third": 1.4, "dear": 9.0}
    arrays = TableArrays.of("clinic", make_cohort())
    planned = list(plan_folds([arrays], methods, PROTOCOL.with_changes(rates=[0.1])))
    guesses = {("clinic", "dear"): 0.1, ("clinic", "first"): 99.0}  # what is known counts
    ordered = in_order(planned, {"clinic": seconds}, guesses)
    cheap = ["first", "second", "new", "third"]  # nothing is known of the new one
    assert names(ordered) == cheap * 2 + ["dear"] * 2
    assert [unit.fold for unit in ordered] == [0] * 4 + [1] * 4 + [0, 1]
    assert {unit.key for unit in ordered} == {unit.key for unit in planned}


def test_results_do_not_depend_on_the_order(tmp_path):
    run = {"protocol": PROTOCOL, "n_jobs": 1, "methods": [SLOW, FAST]}
    there = accuracy(make_cohort(), tmp_path / "there", **run)
    run["methods"] = [replace(FAST, slow=True), replace(SLOW, slow=False)]
    back = accuracy(make_cohort(), tmp_path / "back", **run)
    key = ["method", "rate", "fold", "k"]
    one, other = (found.scores.sort_values(key).reset_index(drop=True) for found in (there, back))
    timed = [column for column in one if "seconds" in column]
    pd.testing.assert_frame_equal(one.drop(columns=timed), other.drop(columns=timed))


def test_seconds_are_guessed_by_size_and_machine_for_methods_that_were_timed():
    small = TableArrays.of("small", make_cohort())
    methods = [*find_methods(["ANOVA F", "RFS"]), FAST]
    planned = list(plan_folds([small], methods, Protocol(rates=[0.1], n_splits=2)))
    guessed = guess_seconds(planned, {"small": small}, machine=1.0)
    assert set(guessed) == {("small", "ANOVA F"), ("small", "RFS")}
    assert 0 < guessed["small", "ANOVA F"] < 0.3
    assert guess_seconds(planned, {"small": small}, 3.0)["small", "RFS"] == pytest.approx(
        3 * guessed["small", "RFS"]
    )
    larger = TableArrays.of("small", make_cohort(n_channels=12))
    assert guess_seconds(planned, {"small": larger}, 1.0)["small", "RFS"] > guessed["small", "RFS"]
    assert 0.01 < probe_machine() < 1000


def test_the_machine_is_probed_only_where_a_guess_depends_on_it(monkeypatch, units):
    def probe():
        raise AssertionError("nobody asked how fast the machine is")

    monkeypatch.setattr("idfsmec.evaluation.forecast.probe_machine", probe)
    assert guess_seconds(units, {"clinic": TableArrays.of("clinic", make_cohort())}) == {}


def test_methods_in_the_registry_have_a_guess():
    arrays = TableArrays.of("clinic", make_cohort())
    planned = list(plan_folds([arrays], find_methods(), PROTOCOL))
    assert {name for _, name in guess_seconds(planned, {"clinic": arrays}, 1.0)} == set(
        names(planned)
    )


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
    assert plans[0].guessed == ()
    assert plans[1].unknown == ()
    assert plans[1].seconds_left() > 0
    assert sum(plans[1].units.values()) == 2  # the others are done


def test_the_run_says_what_it_is_about_to_do():
    means = RunningMeans()
    units = {("t", "mRMR"): 30, ("t", "PS-NSGA"): 30, ("t", "mine"): 1}
    assert means.begin(Plan(units, 2)) == (
        "mRMR 30, PS-NSGA 30, mine 1 units; how long is known when the first units have ended"
    )
    guesses = {("t", "mRMR"): 1.0, ("t", "PS-NSGA"): 60.0}
    assert means.begin(Plan(units, 2, {}, guesses)) == (
        "mRMR 30, PS-NSGA 30, mine 1 units; about 15 min left and whatever mine will take, by a "
        "rough guess; 98% of that is PS-NSGA; without it, by --methods, about 15 s"
    )
    known = Plan(units, 2, {("t", "mRMR"): 20.0, ("t", "mine"): 1.0}, guesses)
    assert means.left(known) == "about 20 min left, partly guessed"
    known = Plan(units, 2, {("t", "mRMR"): 20.0})
    assert means.left(known) == "about 5 min left and whatever PS-NSGA, mine will take"
