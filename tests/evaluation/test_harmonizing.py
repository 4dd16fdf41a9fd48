"""Sites brought to one location and scale inside folds: what is learned where, and warned of."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from idfsmec import FeatureTable
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results, accuracy, resampling, train_model
from idfsmec.evaluation.tasks import load_fold
from idfsmec.missing import simulate_missing
from idfsmec.prediction import (
    METHODS,
    SiteHarmonizer,
    fit_model,
    load_model,
    predict_subjects,
    save_model,
)
from idfsmec.prediction.adjuster import Corrections
from idfsmec.prediction.folds import make_folds
from idfsmec.report import summarise
from idfsmec.solver.scaling import Scaling
from tests.evaluation.cohorts import OURS, make_arrays, make_cohort, make_hospitals

ALIKE = Protocol(
    harmonize=True, n_splits=4, rates=[0.0], ks=[2], svm_costs=[0.1], n_inner_splits=2
)


@pytest.fixture(scope="module")
def wards():
    return make_hospitals(3, shift=4.0, effect=2.0)


@pytest.mark.parametrize("folds", ["subject", "site"])
@pytest.mark.parametrize("missing_in", ["everywhere", "selection"])
def test_a_fold_is_harmonized_by_its_training_samples_alone(wards, folds, missing_in):
    table = simulate_missing(wards, 0.2, random_state=0)
    arrays = make_arrays(table)
    protocol = ALIKE.with_changes(folds=folds, missing_in=missing_in)
    data = load_fold(arrays, protocol, "none", 0.0, 0, 1)
    train, test = make_folds(arrays.y, arrays.subjects, folds, 4, 0, arrays.sites)[1]
    known = SiteHarmonizer().fit(arrays.X[train], sites=arrays.sites[train])
    clean = known.transform(arrays.X[train], sites=arrays.sites[train])
    new = known.transform(arrays.X[test], sites=arrays.sites[test])
    scaling = Scaling.learn(clean)
    prepared = data.training.prepare(Corrections(SiteHarmonizer()))
    assert_allclose(prepared.X, scaling.apply(clean))
    assert_allclose(prepared.steps.apply(data.held_out), scaling.apply(new))
    assert (np.isnan(prepared.X) == np.isnan(arrays.X[train])).all()
    inner = METHODS["ANOVA F"].pipeline(folds=folds)._inner_folds(data.training)[0]
    rest = np.setdiff1d(np.arange(train.size), inner.left_out)
    again = SiteHarmonizer().fit(arrays.X[train][rest], sites=arrays.sites[train][rest])
    clean = again.transform(arrays.X[train][rest], sites=arrays.sites[train][rest])
    prepared = inner.training.prepare(Corrections(SiteHarmonizer()))
    assert_allclose(prepared.X, Scaling.learn(clean).apply(clean))


def test_what_is_held_out_does_not_move_training(wards):
    one = load_fold(make_arrays(wards), ALIKE, "none", 0.0, 0, 0)
    changed = make_arrays(wards)
    changed = changed.with_values(changed.X.copy())
    _, test = make_folds(changed.y, changed.subjects, "subject", 4, 0)[0]
    changed.X[test] *= 100
    other = load_fold(changed, ALIKE.with_changes(ks=[3]), "none", 0.0, 0, 0)
    prepared = [fold.training.prepare(Corrections(SiteHarmonizer())).X for fold in (one, other)]
    assert_allclose(*prepared)


@pytest.mark.slow
def test_it_helps_where_amplifiers_differ_and_is_part_of_the_page(wards, tmp_path):
    plain = Protocol(folds="site", rates=[0.0], ks=[2, 4], svm_costs=[0.1])
    scores = []
    for name, protocol in {"plain": plain, "alike": plain.with_changes(harmonize=True)}.items():
        found = accuracy(wards, tmp_path / name, methods=[OURS], protocol=protocol, n_jobs=1)
        scores.append(found.chosen()["balanced_accuracy"].mean())
    assert scores[1] > scores[0] + 0.1
    said = summarise(Results.read(tmp_path / "alike"))
    assert "sites harmonized" in said["note"]
    assert "Sites" in dict(said["protocol"])
    halves = resampling(wards, tmp_path / "alike", n_resamples=4, n_jobs=1).resampling["table"]
    assert halves["n_resamples"] == 4
    assert found.ranking["feature"].iloc[0] == "f1"


@pytest.mark.parametrize("table", [make_cohort(), make_hospitals(1)])
def test_a_table_without_two_sites_is_refused(table, tmp_path):
    with pytest.raises(InputError, match=r"at least two.*or do not harmonize"):
        accuracy(table, tmp_path, methods=["ANOVA F"], protocol=ALIKE, n_jobs=1)
    with pytest.raises(InputError, match="at least two"):
        fit_model(table, harmonize=True)


def entangled():
    """All controls at Bern, half of the patients at Lund."""
    table = make_hospitals(2)
    sites = table.sites.mask(table.y == "HC", "Bern")
    return FeatureTable(table.X, table.y, table.subjects, sites=sites)


def test_where_site_and_label_go_together_it_warns_and_the_page_does(tmp_path):
    table = entangled()
    with pytest.warns(UserWarning, match=r"confounded: .* % of the difference.*idfsmec audit"):
        accuracy(table, tmp_path, methods=[OURS], protocol=ALIKE, n_jobs=1)
    titles = [one["title"] for one in summarise(Results.read(tmp_path))["warnings"]]
    assert "Site and diagnosis are confounded: table" in titles


@pytest.fixture(scope="module")
def model(wards):
    return fit_model(wards, harmonize=True)


def right(model, table):
    truth = table.y.groupby(table.subjects).first()
    said = predict_subjects(model, table)
    return np.mean([one.predicted == truth[one.subject] for one in said.subjects]), said.notes


@pytest.mark.slow
def test_a_model_carries_it_to_known_and_new_hospitals(model, wards, tmp_path):
    again = load_model(save_model(model, tmp_path / "model.skops"))
    assert_allclose(again.harmonizer.shift_, model.harmonizer.shift_)
    assert right(again, wards)[0] > 0.85
    assert right(again, wards)[1] == ()
    moved = FeatureTable(wards.X * 3 + 50, wards.y, wards.subjects, sites=wards.sites + " West")
    hits, notes = right(again, moved)
    assert hits > 0.75
    assert "site Bern West, not in training, is brought to the location" in notes[0]
    nameless = FeatureTable(moved.X, moved.y, moved.subjects)
    assert "no sites are given" in right(again, nameless)[1][0]
    few = moved.take((moved.subjects == "s00").to_numpy())
    assert "left unchanged: it has 4 samples" in right(again, few)[1][0]


def test_a_model_without_it_ignores_sites(wards):
    plain = fit_model(wards)
    assert plain.harmonizer is None
    assert right(plain, wards)[1] == ()


def test_a_tuned_method_learns_sites_inside_its_folds(wards, tmp_path):
    tuned = METHODS["ANOVA F"].pipeline(folds="site")
    model = fit_model(wards, tuned, harmonize=True)
    again = load_model(save_model(model, tmp_path / "model.skops"))
    assert right(again, wards)[0] > 0.85
    with pytest.raises(InputError, match="need sites"):
        tuned.fit(wards.X, wards.y)


def test_training_leaves_out_hospitals_and_harmonizes_inside(wards):
    options = {"folds": "site", "n_jobs": 1}
    alike = train_model(wards, harmonize=True, **options)
    plain = train_model(wards, **options)
    assert alike.protocol == {
        "folds": "site", "n_splits": 3, "n_repeats": 1, "seed": 0, "harmonize": True,
    }  # fmt: skip
    by_site = alike.performance["by_site"]
    assert [one["site"] for one in by_site] == ["Bern", "Lund", "Oslo"]
    assert [one["n_subjects"] for one in by_site] == [8, 8, 8]
    area = [one.performance["metrics"]["roc_auc"]["mean"] for one in (plain, alike)]
    assert area[1] > area[0]
    with pytest.raises(InputError, match="choose 'subject' or 'site'"):
        train_model(wards, folds="sample")


def test_few_samples_of_a_new_site_are_noted_in_the_task(tmp_path):
    table = make_hospitals(3, n_epochs=1)
    protocol = ALIKE.with_changes(folds="site")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = accuracy(table, tmp_path, methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    assert results.failures.empty


def confounded(n_subjects=48):
    """Two hospitals with enough controls each; Bern has a third of patients, Lund two thirds."""
    table = make_hospitals(2, shift=4.0, effect=2.5, n_subjects=n_subjects, n_epochs=12)
    number = table.subjects.str[1:].astype(int)
    patients = (table.y == "MDD") & (number % 4 < 2)
    controls = (table.y == "HC") & (number % 4 >= 2)
    bern = table.sites == "Bern"
    return table.take((np.where(bern, ~patients, ~controls)).astype(bool))


def test_sites_can_be_learned_from_controls_in_benchmark_and_training(tmp_path):
    table = confounded()
    protocol = ALIKE.with_changes(harmonize="HC")
    arrays = make_arrays(table)
    fold = load_fold(arrays, protocol, "none", 0.0, 0, 1)
    train, test = make_folds(arrays.y, arrays.subjects, "subject", 4, 0)[1]
    labels = table.y.to_numpy()
    known = SiteHarmonizer(reference="HC")
    known.fit(arrays.X[train], labels[train], sites=arrays.sites[train])
    clean = known.transform(arrays.X[train], sites=arrays.sites[train])
    new = known.transform(arrays.X[test], sites=arrays.sites[test])
    scaling = Scaling.learn(clean)
    prepared = fold.training.prepare(Corrections(SiteHarmonizer(reference="HC")))
    assert_allclose(prepared.X, scaling.apply(clean))
    assert_allclose(prepared.steps.apply(fold.held_out), scaling.apply(new))
    results = accuracy(table, tmp_path, methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    assert results.failures.empty
    page = summarise(Results.read(tmp_path))
    assert "sites harmonized by HC" in page["note"]
    assert "training samples (HC only)" in dict(page["protocol"])["Sites"]
    model = train_model(table, harmonize="HC", n_splits=2, n_repeats=1, n_jobs=1)
    assert model.protocol["harmonize"] == "HC"
    assert model.harmonizer.reference == "HC"
    tuned = fit_model(table, METHODS["ANOVA F"].pipeline(), harmonize="HC")
    assert_allclose(tuned.harmonizer.shift_, model.harmonizer.shift_)


def test_a_site_without_controls_is_named_before_the_first_task(tmp_path):
    table = confounded()
    alone = table.take(((table.sites == "Bern") | (table.y == "MDD")).to_numpy())
    protocol = ALIKE.with_changes(harmonize="HC")
    with pytest.warns(UserWarning, match=r"samples of 'HC': Lund \(0\)"):
        accuracy(alone, tmp_path / "a", methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    other = protocol.with_changes(harmonize="control")
    with pytest.raises(InputError, match="the classes are HC, MDD"):
        accuracy(table, tmp_path / "b", methods=["ANOVA F"], protocol=other, n_jobs=1)
