"""Blanking takes away exactly the channels that are not observed."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.missing import mask_features, mask_table
from idfsmec.table import FeatureTable


@pytest.fixture
def table():
    columns = ["Fp1__mean", "Fp2__mean", "Fp1__variance", "Fp2__variance", "E__1__mean"]
    values = np.arange(15.0).reshape(3, 5)
    values[2, 0] = np.nan
    return FeatureTable(pd.DataFrame(values, columns=columns), ["a", "b", "a"], [1, 2, 3])


def test_all_features_of_a_channel_go_wherever_its_columns_stand(table):
    observed = np.array([[False, True, True], [True, True, False], [True, False, True]])
    gaps = mask_table(table, observed).X.isna()
    assert gaps.to_numpy().tolist() == [
        [True, False, True, False, False],
        [False, False, False, False, True],
        [True, True, False, True, False],  # Fp1__mean was missing before and stays so
    ]


def test_a_frame_is_read_by_its_column_names_and_may_leave_channels_out(table):
    observed = pd.DataFrame({"E__1": [True, False, True], "Fp2": [False, True, True]})
    seen = mask_table(table, observed).observed
    assert seen["Fp1"].tolist() == [True, True, False]
    assert seen["Fp2"].tolist() == [False, True, True]
    assert seen["E__1"].tolist() == [True, False, True]


def test_the_given_table_is_not_changed(table):
    before = table.X.copy()
    masked = mask_table(table, np.zeros((3, 3), dtype=bool))
    assert masked.X.isna().all(axis=None)
    assert table.X.equals(before)
    assert masked.y.equals(table.y)
    assert masked.subjects.equals(table.subjects)


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (np.ones((3, 2), dtype=bool), r"\(3, 2\).*3 channels"),
        (np.ones((2, 3), dtype=bool), "2 rows, the table 3"),
        (pd.DataFrame({"Oz": [True] * 3}), "no channel 'Oz'"),
    ],
)
def test_an_indicator_that_does_not_fit_the_table_is_refused(table, observed, message):
    with pytest.raises(InputError, match=message):
        mask_table(table, observed)


def test_arrays_of_features_are_blanked_along_the_last_axis():
    features = np.arange(12).reshape(2, 3, 2)
    observed = np.array([[True, False, True], [False, True, True]])
    masked = mask_features(features, observed)
    assert (np.isnan(masked).all(axis=2) == ~observed).all()
    assert (masked[observed] == features[observed]).all()
    assert (np.isnan(mask_features(features[..., 0], observed)) == ~observed).all()
    with pytest.raises(InputError, match="samples and channels"):
        mask_features(features, observed.T)
