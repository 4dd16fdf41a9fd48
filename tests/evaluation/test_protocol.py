import json
from dataclasses import asdict

import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol
from idfsmec.evaluation.protocol import protocol_from


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("folds", "epoch", "subject, sample"),
        ("missing_in", "never", "everywhere, selection"),
        ("tuning", "best", "nested, oracle"),
        ("metric", "kappa", "balanced_accuracy"),
        ("patterns", ["holes"], "random, recording"),
        ("patterns", "random", "as a list"),
        ("rates", [1.0], "from 0 to below 1"),
        ("rates", [], "is empty"),
        ("rates", 0.3, "a list of numbers"),
        ("ks", [0], "at least 1"),
        ("ks", ["ten"], "a list of numbers"),
        ("seeds", [-1], "at least 0"),
        ("svm_costs", [0.0], "above 0"),
        ("n_splits", 1, "at least 2"),
        ("clip", 0, "above 0"),
        ("clip", "six", "give a number"),
    ],
)
def test_a_wrong_option_is_refused_with_the_choices(option, value, said):
    with pytest.raises(InputError, match=option) as caught:
        Protocol(**{option: value})
    assert said in str(caught.value)


def test_numbers_given_twice_count_once():
    assert Protocol(rates=[0.1, 0.1, 0.5]).rates == (0.1, 0.5)


def test_with_changes_refuses_what_is_no_option():
    with pytest.raises(InputError, match="no option n_folds"):
        Protocol().with_changes(n_folds=3)


def test_the_defaults_are_the_honest_ones():
    protocol = Protocol()
    assert (protocol.folds, protocol.missing_in, protocol.tuning) == (
        "subject",
        "everywhere",
        "nested",
    )
    assert (protocol.n_splits, protocol.rates[0], protocol.rates[-1]) == (10, 0.0, 0.5)


def test_clipping_can_be_switched_off():
    usual = Protocol()
    assert usual.clip == 6.0
    assert protocol_from({"clip": None}, usual).clip is None
    assert protocol_from({"n_splits": None}, usual).n_splits == 10


def test_numbers_of_numpy_are_stored_as_json():
    protocol = Protocol(n_splits=np.int64(4), n_inner_splits=np.int32(3), seeds=np.arange(2))
    stored = json.loads(json.dumps(asdict(protocol)))
    assert (stored["n_splits"], stored["n_inner_splits"], stored["seeds"]) == (4, 3, [0, 1])
    with pytest.raises(InputError, match=r"n_splits is 4.5; give a whole number"):
        Protocol(n_splits=4.5)
    changed = Protocol(clip=np.float32(5.0), rates=np.array([0.1]), svm_costs=np.array([0.1]))
    json.dumps(asdict(changed))
