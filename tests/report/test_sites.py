"""The page after folds by hospital."""

import pytest

from idfsmec.evaluation import Results, accuracy
from idfsmec.report import summarise, write_report
from tests.evaluation.cohorts import OURS, make_hospitals


@pytest.fixture(scope="module", params=[2, 3])
def wards(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("sites") / str(request.param)
    protocol = {"folds": "site", "rates": [0.0], "ks": [2, 4], "svm_costs": [0.1]}
    table = make_hospitals(request.param, effect=3.0)
    accuracy({"wards": table}, out, methods=[OURS], protocol=protocol, n_jobs=1)
    return out


@pytest.mark.usefixtures("empty_figure_files")
def test_the_page_says_who_was_left_out_and_how_settings_were_chosen(wards):
    results = Results.read(wards)
    found = summarise(results)
    (table,) = found["tables"]
    sites = table["sites"]
    assert [row["site"] for row in sites["rows"]] == sorted({row["site"] for row in sites["rows"]})
    assert sites["rows"][0]["n_subjects"] == 24 // len(sites["rows"])
    said = " ".join(sites["sentences"])
    assert "One site was left out at a time" in said
    assert ("by subject-wise folds" in said) == (len(sites["rows"]) == 2)
    assert "one site left out at a time" in found["note"]
    page = write_report(wards).read_text(encoding="utf-8")
    assert "Site left out" in page
    assert "Bern" in page


def test_other_folds_have_no_such_table(results):
    assert summarise(results)["tables"][0]["sites"] is None
