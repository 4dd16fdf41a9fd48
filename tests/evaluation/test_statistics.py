import numpy as np
import pandas as pd
import pytest

from idfsmec.evaluation.statistics import compare_folds
from idfsmec.metrics import corrected_interval


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
