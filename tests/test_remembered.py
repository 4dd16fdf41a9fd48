"""What is known about arrays is kept if their owner has fixed them, and as long as they are."""

import gc

import numpy as np

from idfsmec import _remembered
from idfsmec._remembered import fix, is_fixed, remember


def fixed(values):
    X = np.array(values)
    fix(X)
    return X


def test_what_is_known_about_a_fixed_array_is_found_out_once_for_each_name():
    X, asked = fixed([1.0, 2.0]), []

    def find(name):
        asked.append(name)
        return len(asked)

    found = [remember(X, name, lambda name=name: find(name)) for name in ("a", "b", "a")]
    assert found == [1, 2, 1]
    assert asked == ["a", "b"]


def test_an_array_that_its_owner_has_only_locked_is_asked_each_time():
    X = np.ones(4)
    view = X[:]
    view.setflags(write=False)
    for one in (X, view):
        X.setflags(write=False)
        assert not is_fixed(one)
        before = remember(one, "sum", one.sum)
        X.setflags(write=True)
        X += 1
        assert remember(one, "sum", one.sum) == before + 4


def test_fixing_again_forgets_nothing_and_unlocking_counts():
    X = fixed([1.0, 2.0])
    assert remember(X, "sum", X.sum) == 3
    fix(X)
    assert remember(X, "sum", lambda: None) == 3
    X.setflags(write=True)
    assert not is_fixed(X)


def test_nothing_is_left_of_an_array_that_is_gone():
    before = len(_remembered._found)
    arrays = [fixed([float(one)]) for one in range(20)]
    assert [remember(X, "value", X.max) for X in arrays] == list(range(20))
    del arrays
    gc.collect()
    assert len(_remembered._found) == before
