"""Commands called as functions: they take what Python has, return what they made, and raise."""

import pandas as pd
import pytest

from idfsmec import cli
from idfsmec.errors import InputError
from idfsmec.evaluation import Results
from tests.evaluation.cohorts import make_cohort

pytestmark = pytest.mark.slow

SMALL = {"n_splits": 2, "k": [2], "rates": [0.3], "jobs": 1, "quiet": True, "resamples": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("python")


@pytest.fixture(scope="module")
def table(folder):
    return str(make_cohort().write(folder / "clinic.parquet"))


def test_select_returns_the_ranking_it_writes(table, folder):
    ranking = cli.select(table, folder / "ranking.csv", k=2, resamples=10)
    assert ranking["selected"].sum() == 2
    pd.testing.assert_frame_equal(ranking, pd.read_csv(folder / "ranking.csv"))


def test_benchmark_returns_results_and_report_the_page(table, folder):
    out = str(folder / "out")
    results = cli.benchmark(
        table, out, methods=["ANOVA F"], folds="sample", seeds=1, seed=4, **SMALL
    )
    assert isinstance(results, Results)
    assert results.protocol["folds"] == "sample"
    assert results.protocol["seeds"] == [4]
    text = {**SMALL, "k": "2", "rates": "0.3"}
    again = cli.benchmark([table], out, methods="ANOVA F", folds="sample", seed=4, **text)
    pd.testing.assert_frame_equal(again.scores, results.scores)
    page = cli.report(out)
    assert page == folder / "out" / "report.html"
    assert page.exists()


def test_failed_units_are_in_what_is_returned(table, folder, monkeypatch):
    def fail(*args, **kwargs):
        raise FloatingPointError("no digits left")

    monkeypatch.setattr("idfsmec.selection.MRMR.fit", fail)
    results = cli.benchmark(table, folder / "failed", methods=["mRMR"], **SMALL)
    assert len(results.failures) == 2


def test_bad_input_is_raised(table, folder):
    with pytest.raises(InputError, match="no method 'nope'"):
        cli.benchmark(table, folder / "bad", methods="nope", **SMALL)
    with pytest.raises(InputError, match="folds has 'person'"):
        cli.benchmark(table, folder / "bad", folds="person", **SMALL)
    with pytest.raises(InputError, match="choose from honest, paper"):
        cli.reproduce("modma3", folder, protocol="mine")
