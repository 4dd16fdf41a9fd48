"""Tables written by format version 1 (idfsmec 0.1) must be read by every later version.

Never write these files again: they are what users have on their disks.
"""

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from idfsmec.table import FeatureTable

HERE = Path(__file__).parent
WRITTEN = {
    "table_v1.parquet": "479b8458b9f0a390145628b015b06770047fa6d1b1254fdc2ad291ba6277aed9",
    "table_v1.csv": "999c19a77eb55a10176345f62c8d9aa2be85ece3d14fc7b6e51e5d899d2c047b",
    "table_v1.csv.gz": "09334b47fbaa4cd56499776d367fdcf77e9a97929f62b1ce48d85afcbf53c512",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_table_of_version_1_is_read_as_it_was_written(name):
    table = FeatureTable.read(HERE / name)
    expected = pd.DataFrame(
        {
            "Fp1__ap_alpha": [0.1, np.nan, 1e-30, 1 / 3],
            "Fp1__de_alpha": [1.5, np.nan, -2.25, 1e300],
            "前額__mean": [1.0, 2.0, np.nan, -0.0],
            "left__Cz__mean": [4.0, 5.0, 6.0, 7.0],
        }
    )
    pd.testing.assert_frame_equal(table.X.reset_index(drop=True), expected, check_exact=True)
    assert table.y.tolist() == ["MDD", "HC", "NA", "MDD"]
    assert table.subjects.tolist() == ["02010002", "02020008", "02030009", "02010011"]
    assert table.info == {
        "sfreq": 250.0,
        "bands": {"alpha": [8.0, 13.0]},
        "montage": "standard_1005",
        "detect": True,
        "nothing": None,
    }


@pytest.mark.parametrize(("name", "digest"), WRITTEN.items())
def test_the_files_are_the_ones_that_were_written(name, digest):
    assert hashlib.sha256((HERE / name).read_bytes()).hexdigest() == digest
