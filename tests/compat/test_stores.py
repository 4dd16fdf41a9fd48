"""A store of results of format version 1 (idfsmec 0.1) must be read by every later version.

Never write the file again: it is what users have on their disks.
"""

import hashlib
import shutil
from pathlib import Path

import pytest

from idfsmec.evaluation.results import read_ranking
from idfsmec.evaluation.store import Store

WRITTEN = Path(__file__).parent / "store_v1.sqlite"
DIGEST = "6a02f9d4720c1d7423954431ecad53c52c21e6a8b061c3db57cfbc6babfd3822"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(WRITTEN, tmp_path / "store.sqlite")
    return tmp_path


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_version_1_is_read_as_it_was_written(folder, read_only):
    with Store(folder, read_only=read_only) as store:
        units = store.planned("accuracy")
        assert [where["fold"] for _, where, _ in units] == [0, 1]
        assert units[0][1] == {
            "table": "clinic",
            "pattern": "random",
            "rate": 0.2,
            "seed": 0,
            "fold": 0,
            "method": "ANOVA F",
        }
        scores = [result.rows[0]["roc_auc"] for _, _, result in units]
        assert scores == [0.8888888888888888, 1.0]
        assert [result.rankings for _, _, result in units] == [[[0, 2]], [[0, 1]]]
        assert len(store.done_keys()) == 2
        assert store.failures() == []
        assert store.get_meta("columns") == {"clinic": ["Fp1__a", "Fp1__b", "前額__a"]}
        assert read_ranking(store)["channel"].tolist() == ["Fp1", "前額", "Fp1"]


def test_a_store_of_version_1_can_be_written_on(folder):
    with Store(folder) as store:
        store.set_meta("more", [1])
    with Store(folder, read_only=True) as store:
        assert store.get_meta("more") == [1]
        assert len(store.planned("accuracy")) == 2


def test_the_file_is_the_one_that_was_written():
    assert hashlib.sha256(WRITTEN.read_bytes()).hexdigest() == DIGEST
