"""The audit's verdict: red, amber, green or grey, for reasons that were planted."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import FeatureTable
from idfsmec.audit import add_audit, audit, audits_of
from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results, accuracy
from idfsmec.evaluation.tasks import build_pipeline, load_fold
from idfsmec.metrics import score_decisions
from idfsmec.prediction.methods import proposed_method
from idfsmec.prediction.samples import Samples
from idfsmec.report import write_audit_page
from idfsmec.table.verdicts import stored_verdict
from tests.audit.cohorts import audited

pytestmark = pytest.mark.slow

FAST = {"n_splits": 4}
MAIN = ["recording", "eeg", "regressed"]


def test_a_device_that_coincides_with_the_diagnosis_is_red():
    found = audit(audited(device=1.0), **FAST)
    assert (found.level, found.why) == ("red", "coincide")
    assert found.suspects == ["line_amplitude"]
    assert found.eeg["auc"] > 0.8  # the EEG's AUC is inflated
    assert found.coincide > 0.9
    assert "cannot be told apart" in found.summary()


def test_a_device_that_the_prediction_follows_is_red():
    found = audit(audited(60, device=0.6, seed=2), parts=MAIN, **FAST)
    assert (found.level, found.why) == ("red", "carried")
    assert [row["variables"] for row in found.carried] == [["line_amplitude"]]
    assert found.carried[0]["p_holm"] < 0.05
    assert "follows line noise within the groups" in found.summary()


def test_nothing_of_the_recording_is_green_where_it_would_have_been_found():
    found = audit(audited(80, illness=3.0, seed=1), parts=MAIN, **FAST)
    assert found.level == "green"
    assert found.suspects == []
    assert found.eeg["auc"] > 0.8
    assert found.missed["auc"] < 0.75
    assert found.matched == {} == found.regressed


def test_random_labels_of_twenty_are_never_green():
    levels = {audit(audited(20, seed=seed), parts=["recording"]).level for seed in range(5)}
    assert "green" not in levels


def test_who_was_recorded_is_amber_and_not_about_the_amplifier():
    table = audited(60, illness=3.0, seed=1)
    ages = 40.0 + 15 * (table.y == "MDD") + np.repeat(np.arange(60) % 7, 4)
    table = FeatureTable(table.X, table.y, table.subjects, table.info, rows=ages.to_frame("age"))
    found = audit(table, parts=MAIN, **FAST)
    assert (found.level, found.why) == ("amber", "participants")
    assert "adjusted for age (regressed out inside the folds) it has AUC" in found.summary()
    assert "amplifier" not in found.summary()


def test_too_few_subjects_are_grey():
    found = audit(audited(6, device=1.0), **FAST)
    assert (found.level, found.why) == ("grey", "few")
    assert "6 participants" in found.summary()
    assert "no fact is found with a power of 80 %" in found.summary()


def test_a_class_of_one_person_has_no_folds_and_no_error():
    table = audited(12)
    table = table.take(((table.y == "HC") | (table.subjects == "s01")).to_numpy())
    found = audit(table, **FAST)
    assert found.level == "grey"
    assert found.n_splits == 0


def test_a_table_made_by_hand_says_that_nobody_knows():
    found = audit(audited(facts=False), parts=MAIN, **FAST)
    assert (found.level, found.why) == ("grey", "undescribed")


def test_a_table_made_by_hand_shows_who_lacks_a_channel():
    table = audited(facts=False)
    X = table.X.copy()
    X.loc[(table.y == "MDD").to_numpy(), ["O2__a", "O2__b", "O2__c"]] = np.nan
    found = audit(type(table)(X, table.y, table.subjects), parts=MAIN, n_splits=6)
    assert found.level == "red"
    assert "channels_in_table" in found.suspects


def test_without_the_device_nothing_is_left_of_the_eeg():
    found = audit(audited(60, device=0.6, seed=2), parts=MAIN, **FAST)
    assert found.eeg["auc"] > 0.65
    assert found.regressed["auc"] < found.eeg["auc"]
    assert found.matched["estimable"]
    assert found.matched["low"] < 0.5 < found.matched["high"]


def test_where_device_and_label_coincide_no_subjects_match():
    found = audit(audited(device=1.0), parts=MAIN, **FAST)
    assert not found.matched["estimable"]
    assert "cannot be decided: no participant has a match" in found.summary()


def test_what_the_recording_tells_is_always_part_of_it():
    found = audit(audited(12), parts=["names"], **FAST)
    assert len(found.variables)
    assert found.eeg == {}
    assert found.leaks["repeated"]["n_repeated"] == 0


def test_three_classes():
    found = audit(audited(45, device=1.0, labels=("A", "B", "C")), parts=MAIN, **FAST)
    assert found.level in {"red", "amber"}
    assert found.variables.iloc[0]["variable"] == "line_amplitude"
    assert found.missed["n"] > 45
    assert "B" in found.summary()


def scored(n=60, *, device=0.0, seed=0):
    """A score; the EEG holds a device that moves it, or without one the score itself."""
    rng = np.random.default_rng(seed)
    table = audited(n, seed=seed)
    own, severity = rng.normal(size=(2, n))
    score = severity + device * own
    X = table.X.copy()
    X.iloc[:, 0] += np.repeat(3.0 * (own if device else score), 4)
    rows = pd.DataFrame({"bdi": np.repeat(20 + 5 * score, 4), "device": np.repeat(own, 4)})
    table = FeatureTable(X, table.y, table.subjects, table.info, rows=rows)
    return table.with_target("bdi")


def test_a_score_that_a_device_moves_is_red():
    found = audit(scored(device=1.0), n_splits=6)
    assert (found.level, found.why, found.score) == ("red", "carried", "bdi")
    assert found.suspects == ["device"]
    assert found.eeg["auc"] > 0.7 > found.regressed["auc"]
    assert "Device is associated with bdi, and the EEG's prediction" in found.summary()
    assert found.leaks["shuffled"]["low"] < 0.5 < found.leaks["shuffled"]["high"]


def test_a_score_without_confounding_is_not():
    found = audit(scored(80, seed=1), parts=MAIN, **FAST)
    assert (found.level, found.suspects) == ("green", [])
    assert found.eeg["auc"] > 0.7


def test_grades_are_audited_in_their_order(tmp_path):
    table = audited(60, device=1.0, labels=("mild", "none", "severe"))
    table = table.with_order(["none", "mild", "severe"])
    results = add_audit(table, tmp_path, n_splits=4, n_jobs=1)
    found = audits_of(results)["table"]
    assert found.score == "grade"
    page = write_audit_page(found, tmp_path / "page.html").read_text("utf-8")
    assert "concordance" in page
    assert "AUC" not in page


def test_workers_and_resumption_do_not_change_anything(tmp_path):
    table = audited(20, device=1.0)
    here = audit(table, n_splits=2)
    seen = []
    for jobs in (2, 1):
        results = add_audit(table, tmp_path, n_splits=2, n_jobs=jobs, progress=seen.append)
        assert audits_of(results)["table"].as_dict() == here.as_dict()
    assert len([event for event in seen if event.item]) == 7  # none in the second round


def test_an_audit_is_exported_and_read_back(tmp_path):
    add_audit({"mine": audited(20)}, tmp_path, n_splits=4, n_jobs=1)
    kept = json.loads((tmp_path / "audit.json").read_text("utf-8"))
    assert kept["mine"]["level"] == audits_of(Results.read(tmp_path))["mine"].level


def test_an_audit_of_another_version_is_refused_in_one_line(tmp_path):
    results = add_audit({"mine": audited(20)}, tmp_path, n_splits=4, n_jobs=1)
    del results.audit_parts["mine"]["recording"]["facts"]
    with pytest.raises(InputError, match="of another version; run idfsmec audit again"):
        audits_of(results)


def with_sites(table, n_sites=3):
    number = table.subjects.str[1:].astype(int).to_numpy() // 2
    names = pd.Series(np.array(["Bern", "Lund", "Oslo"])[number % n_sites])
    return FeatureTable(table.X, table.y, table.subjects, table.info, sites=names)


def test_one_site_at_a_time_is_left_out_of_everything():
    table = with_sites(audited(36, illness=3.0, seed=1))
    found = audit(table, folds="site")
    assert (found.folds, found.n_splits) == ("site", 3)
    assert "one of 3 sites left out at a time" in found.summary()
    assert set(found.leaks) >= {"subject", "by_sample", "before", "shuffled"}
    arrays, protocol = Samples.of("t", table), Protocol(folds="site", ks=[20])
    decisions = np.zeros((len(table), 2))
    for fold, site in enumerate(("Bern", "Lund", "Oslo")):
        samples = load_fold(arrays, protocol, "none", 0.0, 0, fold)
        here = (table.sites == site).to_numpy()
        pipeline = build_pipeline(proposed_method(), protocol, arrays.classes, fold)
        default = pipeline.settings[pipeline.default_setting]
        pipeline.set_params(settings=[default], costs=[0.01])
        decisions[here] = pipeline.fit_samples(samples.training).decide(samples.held_out)
    of_sites = [
        score_decisions(decisions[here], arrays.y[here], arrays.subjects[here])["subject_roc_auc"]
        for here in (arrays.sites == site for site in np.unique(arrays.sites))
    ]
    assert found.eeg["auc"] == pytest.approx(np.mean(of_sites))


def test_an_audit_follows_the_folds_of_the_run(tmp_path):
    table = with_sites(audited(12))
    protocol = {"folds": "site", "rates": [0.0], "ks": [2]}
    accuracy({"mine": table}, tmp_path, methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    assert audits_of(add_audit({"mine": table}, tmp_path, n_jobs=1))["mine"].folds == "site"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_splits": 1}, "n_splits"),
        ({"parts": ["eggs"]}, "eggs"),
        ({"also": ["bdi"]}, "bdi"),
        ({"folds": "site"}, "no column 'site'"),
        ({"folds": "sample"}, "choose 'subject' or 'site'"),
    ],
)
def test_wrong_calls_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        audit(audited(8), **wrong)


def test_the_command_takes_a_target_and_keeps_its_verdict_for_it_alone(tmp_path):
    table, path = scored(device=1.0), tmp_path / "t.parquet"
    rows = table.rows.drop(columns="diagnosis").assign(bdi=table.y)
    FeatureTable(table.X, table.rows["diagnosis"], table.subjects, table.info, rows=rows).write(
        path
    )
    words = ["audit", str(path), "--target", "bdi", "--folds", "4", "--jobs", "1"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "Device is associated with bdi" in " ".join(done.output.split())
    kept = FeatureTable.read(path)
    assert stored_verdict(path, kept) == {}
    assert stored_verdict(path, kept.with_target("bdi"))["level"] == "red"
