"""Age and sex are adjusted for inside the folds of training, benchmark and selection."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from idfsmec import cli
from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import accuracy, train_model, validate
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.tasks import build_pipeline
from idfsmec.prediction import METHODS, Adjuster, load_model, predict_subjects, save_model
from idfsmec.prediction.pipeline import TunedPipeline
from idfsmec.prediction.samples import Samples, TrainingSamples
from idfsmec.table import FeatureTable

from .cohorts import make_cohort

FEW = {"rates": [0.0], "n_splits": 3, "n_inner_splits": 2, "ks": [2], "svm_costs": [0.1]}


def make_aged(n_subjects=48, effect=0.0, seed=0, n_epochs=2):
    """Patients are older, and age is in all features; the illness only in some."""
    table = make_cohort(n_subjects, n_epochs, effect=effect, seed=seed)
    rng = np.random.default_rng(seed + 100)
    number = table.subjects.str[1:].astype(int).to_numpy()
    patient = (table.y == "MDD").to_numpy()
    age = np.round(40 + 8 * rng.normal(size=n_subjects))[number] + 14 * patient
    rows = pd.DataFrame({"age": age, "sex": np.where(number % 3, "f", "m")})
    return FeatureTable(table.X + age[:, None] / 8, table.y, table.subjects, rows=rows)


def auc(model):
    return model.performance["metrics"]["roc_auc"]["mean"]


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, "ANOVA F"])
def test_what_only_age_tells_is_gone_after_adjusting_for_it(method):
    table = make_aged()
    options = {"n_splits": 3, "n_repeats": 1}
    assert auc(train_model(table, method, **options)) > 0.75
    adjusted = train_model(table, method, adjust=["age"], **options)
    assert 0.25 < auc(adjusted) < 0.65
    assert adjusted.protocol["adjust"] == ["age"]


@pytest.mark.slow
def test_a_model_keeps_the_adjuster_and_new_participants_need_its_covariates(tmp_path):
    table, other = make_aged(effect=2.0), make_aged(24, effect=2.0, seed=1)
    model = train_model(table, n_splits=3, n_repeats=1, adjust=["age", "sex"], adjust_from="HC")
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    assert loaded.adjuster.reference == "HC"
    frame = predict_subjects(loaded, other).frame
    pd.testing.assert_frame_equal(frame, predict_subjects(model, other).frame)
    older = other.rows.assign(age=other.rows["age"] + 20)
    shifted = FeatureTable(other.X + 20 / 8, other.y, other.subjects, rows=older)
    moved = predict_subjects(loaded, shifted, allow_unusual=True).frame
    assert np.abs(moved["probability of MDD"] - frame["probability of MDD"]).mean() < 0.15
    assert validate(loaded, other).measured["metrics"]["roc_auc"]["mean"] > 0.8
    bare = FeatureTable(other.X, other.y, other.subjects)
    for use in (predict_subjects, validate):
        with pytest.raises(InputError, match="to adjust for age and sex the table needs a column"):
            use(loaded, bare)


def test_every_method_learns_from_the_training_samples_of_its_fold_alone():
    table = make_aged(24, effect=1.0, n_epochs=4)
    protocol = Protocol(**FEW, adjust=["age", "sex"])
    samples = Samples.of("t", table, covariates=["age", "sex"])
    train, test = samples.take(slice(0, 64)), samples.take(slice(64, 96))
    for name in ("IDFS-MEC", "ANOVA F", "all features"):
        pipeline = build_pipeline(METHODS[name], protocol, samples.classes, 0)
        fitted = pipeline.fit_samples(TrainingSamples(train))
        alone = Adjuster().fit(train.X, covariates=train.covariates, groups=train.subject_names)
        assert_allclose(fitted.adjuster_.coef_, alone.coef_)
        decided = fitted.decide(test)
        assert decided.shape == (32, 2)
        changed = fitted.decide(test.with_values(test.X + 1e-9))
        assert_allclose(decided, changed, atol=1e-5)


def test_a_pipeline_takes_covariates_as_scikit_learn_gives_them():
    table = make_aged(24, effect=1.0)
    model = TunedPipeline(adjuster=Adjuster(), n_features_to_select=(2,), costs=(0.1,))
    model.fit(table.X, table.y, covariates=table.rows[["age"]])
    again = TunedPipeline(adjuster=Adjuster(), n_features_to_select=(2,), costs=(0.1,))
    again.fit(table.X, table.y, covariates=table.rows[["age"]].to_numpy())
    known = table.rows[["age"]]
    decided = model.decision_function(table.X, covariates=known)
    assert_allclose(again.decision_function(table.X, covariates=known.to_numpy()), decided)
    with pytest.raises(ValueError, match="covariates is not given"):
        model.predict(table.X)


@pytest.mark.slow
def test_a_benchmark_adjusts_in_its_folds_and_in_its_ranking(tmp_path):
    table = make_aged(30)
    options = {"methods": ["IDFS-MEC"], "n_jobs": 1}
    plain = accuracy(table, tmp_path / "a", protocol=FEW, **options)
    adjusted = accuracy(table, tmp_path / "b", protocol={**FEW, "adjust": ["age"]}, **options)
    means = [r.mean_scores("subject_roc_auc").iloc[0, 0] for r in (plain, adjusted)]
    assert means[0] > 0.75 > means[1]
    effects = [
        pd.read_csv(tmp_path / folder / "ranking.csv")["hedges_g"].abs().mean() for folder in "ab"
    ]
    assert effects[1] < effects[0] / 2
    with pytest.raises(InputError, match="table table: to adjust for bdi the table needs"):
        accuracy(table, tmp_path / "c", protocol={**FEW, "adjust": ["bdi"]}, **options)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.slow
def test_commands_adjust_and_say_in_one_line_what_is_missing(tmp_path):
    path = make_aged(24).write(tmp_path / "table.parquet")
    ranking = cli.select(path, tmp_path / "plain.csv")
    adjusted = cli.select(path, tmp_path / "adjusted.csv", adjust="age,sex")
    assert adjusted["hedges_g"].abs().max() < ranking["hedges_g"].abs().max()
    assert "g_adjusted" not in adjusted
    result = run("select", path, "-o", tmp_path / "t.csv", "--adjust", "age", "--tune")
    assert result.exit_code == 2
    assert "--tune and --adjust cannot be combined" in result.stderr
    result = run("train", path, "-o", tmp_path / "m.skops", "--adjust", "age,bdi")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "needs a column bdi, and beside features it has age and sex" in result.stderr
    cli.train(path, tmp_path / "m.skops", folds=2, repeats=1, adjust="age:spline,sex")
    assert "age (spline) and sex" in (tmp_path / "m.md").read_text()
    bare = make_cohort(6).write(tmp_path / "bare.csv")
    for command in (["predict", "-o", tmp_path / "p.csv"], ["validate", "-o", tmp_path / "v"]):
        result = run(command[0], tmp_path / "m.skops", bare, *command[1:])
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert "bare.csv: to adjust for age and sex the table needs a column age" in result.stderr
