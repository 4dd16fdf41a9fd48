"""Whoever makes inner folds says once that people may be split, unless it knows who they are."""

import warnings

import numpy as np
import pandas as pd
import pytest

from idfsmec import IDFSMECCV, IDFSMECClassifier, IDFSMECRegressor


def messages_of(fits):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for fit in fits:
            fit()
    return [str(one.message) for one in caught if "got no groups" in str(one.message)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (IDFSMECCV, {"lams": [1.0], "gammas": [2.0], "n_features_to_select": [2]}),
        (IDFSMECClassifier, {}),
        (IDFSMECRegressor, {}),
    ],
)
def test_people_that_may_be_split_are_named_once(kind, options):
    # What was said is remembered by name: this kind has said nothing yet.
    fresh = type(f"Fresh{kind.__name__}", (kind,), {"__init__": kind.__init__})
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 6)) + y[:, None]
    channels = [0, 0, 0, 1, 1, 1]
    frame = pd.DataFrame(X, index=pd.Index(np.arange(40) // 2 * 2 + y, name="subject"))
    model = fresh(channels, **options)
    assert messages_of([lambda: model.fit(X, y, groups=np.arange(40))]) == []
    assert messages_of([lambda: model.fit(frame.add_prefix("x"), y)]) == []
    said = messages_of([lambda: model.fit(X, y)] * 2)
    assert len(said) == 1
    assert f"Fresh{kind.__name__}" in said[0]
