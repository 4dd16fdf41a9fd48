"""Who does which unit: a process keeps to its fold, helps others in the end, and none is left."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idfsmec.evaluation import Method, Protocol
from idfsmec.evaluation.execution import execute
from idfsmec.evaluation.lanes import Lane, Taker, do_next, make_lanes, tickets
from idfsmec.evaluation.sanity import AnovaF, RandomOrder
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.units import UnitOutcome, plan_folds

from .cohorts import make_cohort

PROTOCOL = Protocol(rates=[0.1, 0.3], n_splits=3, ks=[2], svm_costs=[0.1])


@pytest.fixture
def planned():
    arrays = TableArrays.of("t", make_cohort())
    methods = [Method("F", AnovaF()), Method("random", RandomOrder())]
    return list(plan_folds([arrays], methods, PROTOCOL)), {"t": arrays}


@given(
    st.lists(st.integers(1, 4), max_size=6),
    st.lists(st.integers(0, 2), min_size=24, max_size=24),
)
def test_nothing_is_done_twice_and_a_lane_is_shared_only_by_who_sees_no_new_one(
    tmp_path_factory, sizes, turns
):
    folder = str(tmp_path_factory.mktemp("taken"))
    lanes = [
        Lane(number, tuple((number, place) for place in range(size)))
        for number, size in enumerate(sizes)
    ]
    takers, seen, last = [Taker(folder) for _ in range(3)], [set(), set(), set()], {}
    done, begun = [], set()
    for who, lane in zip(turns, tickets(lanes), strict=False):
        seen[who].add(lane.number)
        if (unit := takers[who].take(lane)) is None:
            assert all(part in done for number in seen[who] for part in lanes[number].units)
            continue
        if unit[0] != last.get(who):
            assert unit[0] not in begun or seen[who] <= begun
        last[who] = unit[0]
        begun.add(unit[0])
        done.append(unit)
    assert len(done) == len(set(done))
    assert len(tickets(lanes)) == sum(sizes)


def test_one_process_does_all_units_of_a_fold_and_then_the_next(tmp_path, planned):
    units, tables = planned
    given_tickets = tickets(make_lanes(units))

    def note(unit, table):
        return UnitOutcome(unit.key)

    done = [do_next(note, str(tmp_path), lane, tables) for lane in given_tickets]
    assert [one.key for one in done] == [unit.key for unit in units]
    assert do_next(note, str(tmp_path), given_tickets[0], tables) is None


def say_who(unit, table):
    return UnitOutcome(unit.key, error=str(os.getpid()))


@pytest.mark.slow
def test_processes_do_every_unit_once(monkeypatch, planned):
    monkeypatch.setattr("idfsmec.evaluation.execution.run_unit", say_who)
    units, tables = planned
    outcomes = list(execute(units, tables, n_jobs=2))
    assert sorted(one.key for one in outcomes) == sorted(unit.key for unit in units)
    assert str(os.getpid()) not in {one.error for one in outcomes}
