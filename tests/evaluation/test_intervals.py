import numpy as np
import pandas as pd
import pytest
from scipy import stats

from idfsmec.evaluation import compare_folds, corrected_interval


class TestCorrectedInterval:
    def test_a_hand_computed_example_agrees(self):
        # mean 0.8, variance 0.00625, factor 1/5 + 1/4 = 0.45, t(0.975, 4) = 2.776445
        found = corrected_interval([0.80, 0.75, 0.85, 0.70, 0.90], n_train=80, n_test=20)
        assert found.mean == pytest.approx(0.8)
        assert found.standard_error == pytest.approx(np.sqrt(0.45 * 0.00625))
        assert found.high - found.mean == pytest.approx(2.776445 * np.sqrt(0.0028125), rel=1e-6)
        assert found.mean - found.low == pytest.approx(found.high - found.mean)

    def test_without_a_test_set_to_speak_of_it_is_students_interval(self):
        scores = np.random.default_rng(0).normal(size=30)
        found = corrected_interval(scores, n_train=1e12, n_test=1e-3)
        low, high = stats.t.interval(0.95, 29, scores.mean(), stats.sem(scores))
        assert (found.low, found.high) == pytest.approx((low, high))

    def test_repetitions_do_not_shrink_the_interval_to_nothing(self):
        rng = np.random.default_rng(1)
        few = corrected_interval(rng.normal(size=10), 90, 10)
        many = corrected_interval(rng.normal(size=100_000), 90, 10)
        assert many.standard_error == pytest.approx(np.sqrt(1 / 9), rel=0.02)
        assert many.standard_error > 0.4 * few.standard_error

    def test_covers_the_truth_where_the_plain_interval_does_not(self):
        """Simulated 10-fold results whose folds correlate by 1/10, as the correction assumes."""
        rng = np.random.default_rng(2)
        n_runs, n_folds = 2000, 10
        shared = rng.normal(size=(n_runs, 1)) * np.sqrt(0.1)
        scores = shared + rng.normal(size=(n_runs, n_folds)) * np.sqrt(0.9)
        corrected, plain = 0, 0
        for run in scores:
            found = corrected_interval(run, 90, 10)
            corrected += found.low <= 0 <= found.high
            simple = corrected_interval(run, 1e12, 1e-3)
            plain += simple.low <= 0 <= simple.high
        assert 0.93 < corrected / n_runs < 0.97
        assert plain / n_runs < 0.9

    def test_one_value_has_no_interval(self):
        found = corrected_interval([0.7], 90, 10)
        assert found.mean == 0.7
        assert np.isnan([found.low, found.high]).all()

    @pytest.mark.parametrize("values", [[], [np.nan, 0.5], [[0.5]]])
    def test_refuses_what_is_no_list_of_numbers(self, values):
        with pytest.raises(ValueError, match="at least one finite number"):
            corrected_interval(values, 90, 10)

    def test_refuses_an_empty_training_set(self):
        with pytest.raises(ValueError, match="n_train"):
            corrected_interval([0.5, 0.6], 0, 10)


class TestFoldComparisons:
    scores = pd.DataFrame({"a": [0.9, 0.8, 0.7, 0.8], "b": [0.6, 0.6, 0.4, np.nan], "c": 0.5})

    def test_intervals_are_those_of_the_paired_differences(self):
        found = compare_folds(self.scores, "a", 75, 25).set_index("method")
        expected = corrected_interval([0.3, 0.2, 0.3], 75, 25)
        assert found.loc["b", ["difference", "low", "high"]].tolist() == pytest.approx(
            [expected.mean, expected.low, expected.high]
        )
        assert found["n"].tolist() == [3, 4]

    def test_p_is_below_a_twentieth_exactly_where_the_interval_leaves_zero_out(self):
        rng = np.random.default_rng(0)
        scores = pd.DataFrame(rng.normal(size=(6, 40)) + np.linspace(0, 2, 40))
        found = compare_folds(scores.rename(columns=str), "0", 80, 20)
        outside = (found["low"] > 0) | (found["high"] < 0)
        assert 0 < outside.sum() < len(found)
        assert ((found["p_value"] < 0.05) == outside).all()

    def test_one_fold_has_a_difference_and_no_interval(self):
        found = compare_folds(self.scores[:1], "a", 75, 25)
        assert found["difference"].tolist() == pytest.approx([0.3, 0.4])
        assert found[["low", "high", "p_value"]].isna().all(axis=None)

    def test_equal_methods_differ_not_at_all(self):
        same = pd.DataFrame({"a": [0.5, 0.6], "b": [0.5, 0.6]})
        assert compare_folds(same, "a", 75, 25)["p_value"].tolist() == [1.0]
