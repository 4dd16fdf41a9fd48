"""Files for people: no cell runs as a formula, and what is read back is what was measured."""

import csv
import shutil

import pytest
from pandas.testing import assert_frame_equal

from idfsmec.evaluation import Protocol, Results, accuracy, resampling
from idfsmec.paper import sensitivity, write_tables
from idfsmec.table import FeatureTable

from .cohorts import make_cohort

HOSTILE = ["=cmd()", "+1", "@SUM(A1)", "-2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    table = make_cohort()
    X = table.X.copy()
    X.columns = [
        f"{channel}__{feature}" for channel in HOSTILE for feature in ("=f1", "alpha", "NA")
    ]
    table = FeatureTable(X, table.y, table.subjects)
    out = tmp_path_factory.mktemp("out")
    how = {"protocol": Protocol(rates=[0.3], n_splits=2, ks=[3]), "n_jobs": 1}
    accuracy({"=evil": table}, out, methods=["IDFS-MEC"], **how)
    sensitivity({"=evil": table}, out, lams=[1.0], gammas=[2.0], **how)
    write_tables(resampling({"=evil": table}, out, n_resamples=2))
    return out


@pytest.mark.parametrize("name", ["results", "ranking", "fig2", "fig3"])
def test_no_cell_of_a_csv_file_begins_like_a_formula(folder, name):
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert any("evil" in cell for cell in cells)
    for cell in cells:
        try:
            float(cell)
        except ValueError:
            assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n")), cell


def test_names_come_back_unchanged(folder):
    results = Results.read(folder)
    assert set(results.ranking["table"]) == {"=evil"}
    assert set(results.ranking["channel"]) == set(HOSTILE)
    assert set(results.ranking["feature"]) == {"=f1", "alpha", "NA"}
    assert set(results.scores["table"]) == {"=evil"}
    columns = {
        f"{channel}__{feature}" for channel in HOSTILE for feature in ("=f1", "alpha", "NA")
    }
    assert set(results.selections["ranking"].explode()) <= columns


def test_exported_files_are_never_read_back(folder, tmp_path):
    """Where results come from is the store alone; a page made of it needs nothing else."""
    before = Results.read(folder)
    shutil.copy(folder / "store.sqlite", tmp_path)
    for name in ("results.parquet", "selections.parquet", "tables.json", "resampling.json"):
        assert (folder / name).exists()
        (tmp_path / name).write_text("not what was measured")
    after = Results.read(tmp_path)
    assert_frame_equal(after.scores, before.scores)
    assert_frame_equal(after.ranking, before.ranking)
    assert after.resampling == before.resampling
    assert after.environment == before.environment
    assert after.protocol == before.protocol
