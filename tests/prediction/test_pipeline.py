"""Parts of a fitted method: marks of missing channels, and calibration on subjects held out."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.prediction.pipeline import MissingMarks, calibrate


def test_columns_that_go_missing_together_share_a_mark():
    X = np.arange(12.0).reshape(3, 4)
    X[0, :2] = np.nan
    marks = MissingMarks.learn(X)
    assert_array_equal(marks.columns, [0])
    assert_allclose(marks.shares, [1 / 3])
    assert_allclose(marks.add(X)[:, 4], [2 / 3, -1 / 3, -1 / 3])
    assert_array_equal(marks.add(X)[0, :2], [0, 0])
    assert MissingMarks.learn(X[1:]).add(X).shape == (3, 4)


@settings(max_examples=15)
@given(st.floats(0.2, 5), st.floats(-1, 1), st.integers(0, 100))
def test_calibration_undoes_a_wrong_scale_and_a_wrong_prior(scale, shift, seed):
    rng = np.random.default_rng(seed)
    codes = np.arange(1500) % 2
    odds = 2 * rng.normal(size=1500) + 2.0 * (2 * codes - 1)  # log odds of two normals
    told = np.column_stack([np.zeros(1500), (odds + shift) / scale])
    slope, offsets = calibrate(told, codes, np.ones(1500), 1.0)
    again = slope * told[:, 1] + offsets[1] - offsets[0]
    assert abs(np.polyfit(odds, again, 1)[0] - 1) < 0.25
    assert abs((again - odds).mean()) < 0.4


def test_few_subjects_change_little():
    told = np.array([[1.0, -1.0], [-1.0, 1.0]])
    slope, offsets = calibrate(told, np.array([0, 1]), np.ones(2), 1.0)
    assert 1 <= slope < 2
    assert_allclose(offsets, 0, atol=1e-4)
