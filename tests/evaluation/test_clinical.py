"""What a clinic reads of a benchmark: participants held out, pooled over folds and repeats."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results, accuracy, clinical_scores
from idfsmec.metrics import auc
from idfsmec.table import FeatureTable

from .cohorts import OURS, Computed, make_cohort, make_hospitals

pytestmark = pytest.mark.slow

PROTOCOL = Protocol(
    rates=[0.3, 0.0], n_splits=2, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2, seeds=[0, 1]
)


def make_described():
    table = make_cohort(n_subjects=40, effect=0.8)
    number = table.subjects.str[1:].astype(int).to_numpy()
    rows = pd.DataFrame({"sex": np.where(number < 8, "f", "m"), "age": 20 + number})
    return FeatureTable(table.X, table.y, table.subjects, rows=rows)


def run(out, table=None, protocol=PROTOCOL, methods=("ANOVA F", OURS), **how):
    table = make_described() if table is None else table
    how = {"n_jobs": 1, **how}
    return accuracy({"=cohort": table}, out, methods=methods, protocol=protocol, **how)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    run(out, prevalence=0.1)
    return out


def test_every_participant_is_pooled_once_at_the_lowest_rate(folder):
    results = Results.read(folder)
    held_out = results.held_out
    assert set(held_out["rate"]) == {0.0}
    assert (held_out.groupby(["method", "seed"])["subject"].nunique() == 40).all()
    assert len(held_out) == 2 * 2 * 40
    clinical = clinical_scores(results)
    assert clinical["method"] == "IDFS-MEC"  # the proposed one, though it was named second
    assert (clinical["rate"], clinical["prevalence"]) == (0.0, 0.1)
    assert (clinical["classes"], clinical["class"]) == (["HC", "MDD"], "MDD")
    assert clinical["n_subjects"] == [20, 20]
    groups = {f"{group['by']} {group['group']}": group for group in clinical["groups"]}
    ages = ["age under 30", "age 30 to 44", "age 45 to 59"]
    assert list(groups) == ["sex f", "sex m", *ages]
    assert groups["sex f"]["n_subjects"] == [4, 4]
    sensitivity = clinical["scores"]["sensitivity"]["mean"]
    parts = [groups[name]["scores"]["sensitivity"]["mean"] for name in ("sex f", "sex m")]
    assert sensitivity == pytest.approx((4 * parts[0] + 16 * parts[1]) / 20)
    assert clinical["scores"]["PPV"]["mean"] < sensitivity < clinical["scores"]["NPV"]["mean"]
    assert clinical_scores(results, method="ANOVA F")["method"] == "ANOVA F"


def test_probabilities_are_those_of_the_setting_that_was_scored(folder):
    """The AUC over the participants of a fold is the one in the scores."""
    results = Results.read(folder)
    chosen = results.chosen().query("rate == 0").set_index(["method", "seed", "fold"])
    for where, fold in results.held_out.groupby(["method", "seed", "fold"]):
        found = auc(fold["probability"].to_numpy(), fold["true"].to_numpy() == 1)
        # Means of probabilities, not of decisions: now and then another order of two.
        assert found == pytest.approx(chosen.loc[where, "subject_roc_auc"], abs=0.1)


def test_the_file_has_every_score_with_its_ci_and_no_formula(folder):
    rows, clinical = pd.read_csv(folder / "clinical.csv"), clinical_scores(Results.read(folder))
    assert set(rows["table"]) == {"'=cohort"}
    named = {"sensitivity", "specificity", "PPV", "NPV", "net benefit"}
    assert set(rows["score"]) == named
    assert (rows["low"] <= rows["value"]).all()
    assert (rows["value"] <= rows["high"]).all()
    everyone = rows[rows["by"] == "all"].set_index("score")
    for name, score in clinical["scores"].items():
        assert everyone.loc[name, "value"] == pytest.approx(score["mean"])
    curve = everyone.loc["net benefit"]
    assert curve["threshold"].tolist() == [row["threshold"] for row in clinical["decision_curve"]]


def test_processes_and_a_resume_change_nothing_and_a_prevalence_no_task(folder, tmp_path):
    def stop(event):
        if event.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, progress=stop)
    again = run(tmp_path, prevalence=0.1, n_jobs=2)
    assert_frame_equal(again.held_out, Results.read(folder).held_out, check_exact=True)
    before = (folder / "clinical.csv").read_bytes()
    assert (tmp_path / "clinical.csv").read_bytes() == before
    computed = Computed()
    assert clinical_scores(run(tmp_path, progress=computed))["prevalence"] == 0.5
    assert computed.events == []
    assert (tmp_path / "clinical.csv").read_bytes() != before


def test_sites_are_groups_and_three_classes_and_sample_wise_folds_have_none(tmp_path):
    small = PROTOCOL.with_changes(seeds=[0], rates=[0.3])
    by_site = run(tmp_path, make_hospitals(), small.with_changes(folds="site"), ["ANOVA F"])
    clinical = clinical_scores(by_site)
    assert clinical["rate"] == 0.3
    assert [group["group"] for group in clinical["groups"]] == ["Bern", "Lund", "Oslo"]
    others = {
        "three classes": (make_cohort(n_classes=3), small),
        "samples": (make_hospitals(), small.with_changes(folds="sample")),
        "oracle": (make_hospitals(), small.with_changes(tuning="oracle")),
    }
    for table, protocol in others.values():
        results = run(tmp_path, table, protocol, ["ANOVA F"], overwrite=True)
        assert not len(results.failures)
        assert clinical_scores(results) is None
        # Nor that of the run before: of three classes there is a file, of each class.
        assert (tmp_path / "clinical.csv").exists() == (table.y.nunique() == 3)


def test_a_prevalence_is_a_share(tmp_path):
    with pytest.raises(InputError, match=r"prevalence is 1\.5: give a share"):
        run(tmp_path, prevalence=1.5)
