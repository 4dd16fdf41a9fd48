"""Files for people: no cell runs as a formula, and what is read back is what was measured."""

import csv

import pytest

from idfsmec.evaluation import Protocol, Results, accuracy, sensitivity
from idfsmec.paper import reproduction
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
    how = {"protocol": Protocol(rates=[0.3], n_splits=2, ks=[3]), "n_jobs": 1, "progress": False}
    accuracy({"=evil": table}, out, methods=["IDFS-MEC"], **how)
    sensitivity({"=evil": table}, out, lams=[1.0], gammas=[2.0], **how)
    reproduction.write_tables(Results.read(out), out)
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
