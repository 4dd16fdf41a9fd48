"""What all selectors share: how many features are kept, and the order of features."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from idfsmec import IDFSMEC, selection
from idfsmec.selection import RFS
from idfsmec.selection.base import CompleteSelector, RankingSelector


class Backwards(CompleteSelector):
    """Ranks the last column first."""

    def __init__(self, *, n_features_to_select=20):
        self.n_features_to_select = n_features_to_select

    def _rank(self, X, y):
        self._set_order(np.arange(X.shape[1])[::-1])


def data(n_features):
    return np.random.default_rng(0).normal(size=(10, n_features)), np.tile([0, 1], 5)


BASELINES = ["CDLSR", "CMIM", "FSOR", "GRMOR", "GroupLasso", "MRMR"]
BASELINES += ["MRMSR", "PSNSGA", "ReliefF", "RFS", "RRCT"]


@pytest.mark.parametrize("selector", [IDFSMEC, *(getattr(selection, name) for name in BASELINES)])
def test_20_features_are_kept_unless_asked_otherwise(selector):
    assert issubclass(selector, RankingSelector)
    assert selector().n_features_to_select == 20


@pytest.mark.parametrize(
    ("wanted", "n_features", "kept"),
    [(20, 30, 20), (20, 5, 5), (3, 30, 3), (0.1, 30, 3), (0.01, 30, 1), (1.0, 30, 30), (1, 30, 1)],
)
def test_a_number_or_a_fraction_of_the_features_is_kept(wanted, n_features, kept):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = Backwards(n_features_to_select=wanted).fit(*data(n_features))
    assert selector.support_.sum() == kept
    assert selector.support_[-kept:].all()


def test_asking_for_more_than_there_is_keeps_all_and_warns():
    with pytest.warns(UserWarning, match="21 is more than the 5 features"):
        selector = Backwards(n_features_to_select=21).fit(*data(5))
    assert selector.support_.all()


def test_scores_of_an_order_fall_in_equal_steps():
    selector = Backwards().fit(*data(4))
    assert_array_equal(selector.ranking_, [4, 3, 2, 1])
    assert_array_equal(selector.scores_, [0.25, 0.5, 0.75, 1.0])


def test_one_class_is_refused():
    X, _ = data(4)
    with pytest.raises(ValueError, match="holds only one class: 1"):
        RFS().fit(X, np.ones(10, dtype=int))


def test_infinity_is_refused_with_the_name_of_its_column():
    X, y = data(4)
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match=r"Backwards: .* infinity, first in column 2\."):
        Backwards().fit(X, y)
