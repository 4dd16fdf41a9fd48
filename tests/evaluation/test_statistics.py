import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.power import TTestPower

from idfsmec.evaluation.statistics import compare_folds, interval_by_fold, power
from idfsmec.metrics import fold_interval


class TestFoldComparisons:
    scores = pd.DataFrame({"a": [0.9, 0.8, 0.7, 0.8], "b": [0.6, 0.6, 0.4, np.nan], "c": 0.5})

    def test_intervals_are_those_of_the_paired_differences(self):
        found = compare_folds(self.scores, "a").set_index("method")
        expected = fold_interval([0.3, 0.2, 0.3])
        assert found.loc["b", ["difference", "low", "high"]].tolist() == pytest.approx(
            [expected.mean, expected.low, expected.high]
        )
        assert found["n"].tolist() == [3, 4]
        assert found["df"].tolist() == [2, 3]

    def test_repeats_are_rows_of_the_same_folds(self):
        rng = np.random.default_rng(0)
        index = pd.MultiIndex.from_product([range(3), range(5)], names=["seed", "fold"])
        scores = pd.DataFrame(rng.random((15, 2)), index, columns=["a", "b"])
        found = compare_folds(scores, "a").iloc[0]
        expected = fold_interval((scores["a"] - scores["b"]).to_numpy().reshape(3, 5))
        assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
        assert found["df"] == 4
        assert interval_by_fold(scores["a"], 40) == fold_interval(
            scores["a"].to_numpy().reshape(3, 5), 50
        )

    @pytest.mark.parametrize(("n_splits", "n_train", "n"), [(2, 20, 40), (4, 30, 40)])
    def test_the_participants_are_those_trained_on_and_those_held_out(self, n_splits, n_train, n):
        scores = pd.Series(np.linspace(0.6, 0.9, n_splits))
        assert interval_by_fold(scores, n_train) == fold_interval(scores.to_numpy(), n)

    def test_p_is_below_a_twentieth_exactly_where_the_interval_leaves_zero_out(self):
        rng = np.random.default_rng(0)
        scores = pd.DataFrame(rng.normal(size=(6, 40)) + np.linspace(0, 2, 40))
        found = compare_folds(scores.rename(columns=str), "0")
        outside = (found["low"] > 0) | (found["high"] < 0)
        assert 0 < outside.sum() < len(found)
        assert ((found["p_value"] < 0.05) == outside).all()

    def test_one_fold_has_a_difference_and_no_interval(self):
        found = compare_folds(self.scores[:1], "a")
        assert found["difference"].tolist() == pytest.approx([0.3, 0.4])
        assert found[["low", "high", "p_value"]].isna().all(axis=None)

    def test_methods_with_the_same_scores_have_a_p_of_1(self):
        same = pd.DataFrame({"a": [0.5, 0.6], "b": [0.5, 0.6]})
        assert compare_folds(same, "a")["p_value"].tolist() == [1.0]


@pytest.mark.parametrize("n_tests", [1, 8])
def test_power_is_that_of_statsmodels_for_a_t_test_of_so_many_degrees_of_freedom(n_tests):
    # A one-sample t test of n values of SD 1 has the standard error 1 / sqrt(n).
    expected = TTestPower().power(0.9, 10, 0.05 / n_tests, df=9)
    assert power(0.9, 1 / np.sqrt(10), 9, n_tests) == pytest.approx(expected, abs=1e-9)
    assert power(0.0, 1.0, 9, n_tests) == pytest.approx(0.05 / n_tests)
    assert power(0.9, 1 / np.sqrt(10), 9) == power(0.9, 1 / np.sqrt(10), 9, 1)
    assert (power(0.9, 0.0, 9), power(0.0, 0.0, 9)) == (1.0, 0.0)  # scores that never vary
