"""A small table whose file the tests of disk and store share."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.table import FeatureTable


def make_table(path):
    """Twenty-four people, two channels of three features, nothing to find."""
    rng = np.random.default_rng(0)
    columns = [f"{channel}__{feature}" for channel in ("Cz", "Fp1") for feature in "abc"]
    labels, subjects = ["HC", "MDD"] * 12, [f"s{i}" for i in range(24)]
    made = FeatureTable(pd.DataFrame(rng.normal(size=(24, 6)), columns=columns), labels, subjects)
    return made.write(path)


@pytest.fixture
def small_table(tmp_path):
    """Where the table lies."""
    return make_table(tmp_path / "small.parquet")
