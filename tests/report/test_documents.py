"""Audit and ranking beside the table in its BIDS derivative."""

import json

import pandas as pd
import pytest

from idfsmec.audit import add_audit, audits_of
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, accuracy
from idfsmec.features import write_derivative
from idfsmec.report import add_to_derivative
from tests.audit.cohorts import audited

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("derivative")
    table = audited(20, 2)
    small = Protocol(rates=[0.0], n_splits=2, ks=[2], tuning="grid")
    accuracy({"mine": table}, folder / "results", methods=["IDFS-MEC"], protocol=small, n_jobs=1)
    results = add_audit({"mine": table}, folder / "results", n_splits=4, n_jobs=1)
    return results, add_to_derivative(write_derivative(table, folder / "out"), results, "mine")


def test_the_audit_is_there(written):
    results, out = written
    found = json.loads((out / "desc-idfsmec_audit.json").read_text("utf-8"))
    assert found["level"] == audits_of(results)["mine"].as_dict()["level"]


def test_the_ranking_is_there_with_every_column_described(written):
    results, out = written
    ranking = pd.read_csv(out / "desc-idfsmec_ranking.tsv", sep="\t", na_values="n/a")
    assert ranking["rank"].tolist() == results.ranking["rank"].tolist()
    described = json.loads((out / "desc-idfsmec_ranking.json").read_text("utf-8"))
    assert list(described) == list(ranking.columns)
    assert all(one["Description"] for one in described.values())


def test_results_need_a_derivative_to_stand_beside(written, tmp_path):
    with pytest.raises(InputError, match="write the table there first"):
        add_to_derivative(tmp_path, written[0], "mine")
