"""A model on participants of another table: scores, the card beside them, what is left out."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import optimize, special, stats
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from idfsmec.errors import InputError
from idfsmec.evaluation import train_model, validate
from idfsmec.prediction import fit_model
from idfsmec.table import FeatureTable

from .cohorts import make_cohort

pytestmark = pytest.mark.slow


def describe(table):
    """Add sex, age and a condition to the samples of a cohort."""
    number = table.subjects.str[1:].astype(int).to_numpy()
    rows = pd.DataFrame(
        {
            "sex": np.where(number % 3, "f", "m"),
            "age": 20 + number,
            "condition": np.where(np.arange(len(table)) % 2, "eyes open", "eyes closed"),
        }
    )
    return FeatureTable(table.X, table.y, table.subjects, rows=rows)


def replace_values(table, subject, value):
    """Give all samples of a participant one value."""
    X = table.X.copy()
    X[(table.subjects == subject).to_numpy()] = value
    return FeatureTable(X, table.y, table.subjects, rows=table.rows)


@pytest.fixture(scope="module")
def model():
    return train_model(describe(make_cohort(30, 2, effect=1.2)), n_splits=3, n_repeats=1)


@pytest.fixture(scope="module")
def other():
    """Other participants, 20 with and 31 without the diagnosis; one has no channel."""
    table = describe(make_cohort(62, 2, effect=0.8, seed=3))
    number = table.subjects.str[1:].astype(int).to_numpy()
    kept = table.take((number % 2 == 0) | (number < 40))
    return replace_values(kept, "s01", np.nan)


@pytest.fixture(scope="module")
def validation(model, other):
    return validate(model, other)


@pytest.fixture(scope="module")
def known(model, validation):
    """True class, probability as predicted, and adjusted to the shares of the classes here."""
    frame = validation.predictions.dropna(subset="predicted")
    y = (frame["true"] == "MDD").to_numpy()
    given = frame["probability of MDD"].to_numpy()
    odds = y.mean() / (1 - y.mean()) / (model.prior[1] / model.prior[0])
    return y, given, special.expit(special.logit(given) + np.log(odds))


def close(values, expected):
    assert [values[end] for end in ("mean", "low", "high")] == pytest.approx(expected, rel=1e-4)


def test_scores_are_those_of_scikit_learn(validation, known):
    y, given, adjusted = known
    assert validation.measured["n_subjects"] == {"HC": 31, "MDD": 19}
    metrics = validation.measured["metrics"]
    assert metrics["roc_auc"]["mean"] == pytest.approx(roc_auc_score(y, given))
    found = balanced_accuracy_score(y, given > 0.5)
    assert metrics["balanced_accuracy"]["mean"] == pytest.approx(found)
    brier = brier_score_loss(y, adjusted)
    assert metrics["brier"]["mean"] == pytest.approx(brier)
    scaled = 1 - brier / brier_score_loss(y, np.full(y.size, y.mean()))
    assert metrics["scaled_brier"]["mean"] == pytest.approx(scaled)


def test_sensitivity_has_wilsons_interval_and_balanced_accuracy_movers(validation, known):
    y, given, _ = known
    scores, ends = validation.measured["clinical"]["scores"], []
    for name, mask in (("sensitivity", y), ("specificity", ~y)):
        hits = int(((given > 0.5) == y)[mask].sum())
        low, high = proportion_confint(hits, mask.sum(), method="wilson")
        close(scores[name], [hits / mask.sum(), low, high])
        ends.append((hits / mask.sum(), low, high))
    (a, a_low, a_high), (b, b_low, b_high) = ends
    low = (a + b - np.sqrt((a - a_low) ** 2 + (b - b_low) ** 2)) / 2
    high = (a + b + np.sqrt((a - a_high) ** 2 + (b - b_high) ** 2)) / 2
    close(validation.measured["metrics"]["balanced_accuracy"], [(a + b) / 2, low, high])


def test_brier_score_has_welchs_interval_at_any_prevalence(model, other, known):
    y, given, _ = known
    metrics = validate(model, other, prevalence=0.5).measured["metrics"]
    odds = model.prior[0] / model.prior[1]
    errors = (special.expit(special.logit(given) + np.log(odds)) - y) ** 2
    welch = stats.ttest_ind(errors[y] / 2, -errors[~y] / 2, equal_var=False)
    low, high = welch.confidence_interval()
    mean = (errors[y].mean() + errors[~y].mean()) / 2
    close(metrics["brier"], [mean, low, high])
    close(metrics["scaled_brier"], [1 - 4 * mean, 1 - 4 * high, 1 - 4 * low])


def sandwich(fit, design, y, place):
    """Interval of a coefficient by the variances of its scores within the classes."""
    p = fit if isinstance(fit, np.ndarray) else fit.predict(design)
    information = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
    scores = design * (y - p)[:, None]
    parts = [scores[y == k] - scores[y == k].mean(axis=0) for k in (False, True)]
    spread = sum(len(part) / (len(part) - 1) * part.T @ part for part in parts)
    error = np.sqrt((information @ spread @ information)[place, place])
    return stats.t.ppf(0.975, min(map(len, parts)) - 1) * error


def test_calibration_is_that_of_logistic_regressions(validation, known):
    y, _, adjusted = known
    line = special.logit(np.clip(adjusted, 0.005, 0.995))
    design = sm.add_constant(line)
    fitted = sm.Logit(y, design).fit(disp=0)
    calibration, slope = validation.measured["calibration"], fitted.params[1]
    half = sandwich(fitted, design, y, 1)
    close(calibration["slope"], [slope, slope - half, slope + half])
    assert calibration["line"] == pytest.approx(fitted.params, rel=1e-4)
    ones = np.ones((y.size, 1))
    large = sm.GLM(y, ones, family=sm.families.Binomial(), offset=line).fit()
    half = sandwich(large.fittedvalues, ones, y, 0)
    close(
        calibration["intercept"], [large.params[0], large.params[0] - half, large.params[0] + half]
    )
    assert sum(group["n"] for group in calibration["bins"]) == y.size


def test_recalibration_leaves_each_participant_out(validation, known):
    y, _, adjusted = known
    line, after = special.logit(adjusted), np.empty(y.size)
    for i in range(y.size):
        rest = np.delete(np.arange(y.size), i)
        weights = np.where(y, y.sum() / y[rest].sum(), (~y).sum() / (~y)[rest].sum())

        def loss(coef, rest=rest, weights=weights):
            value = coef[0] + coef[1] * line[rest]
            parts = np.logaddexp(0, value) - y[rest] * value
            return (weights[rest] * parts).sum() + coef[0] ** 2 / 8 + (coef[1] - 1) ** 2 / 2

        coef = optimize.minimize(loss, [0.0, 1.0]).x
        after[i] = special.expit(coef[0] + coef[1] * line[i])
    found = validation.measured["recalibration"]
    assert found["brier"] == pytest.approx(np.mean((adjusted - y) ** 2))
    assert found["recalibrated"] == pytest.approx(np.mean((after - y) ** 2), abs=2e-3)
    gain = found["brier"] - found["recalibrated"]
    assert found["gain"]["mean"] == pytest.approx(gain)
    assert found["gain"]["low"] < gain < found["gain"]["high"]


def test_the_card_stands_beside_with_the_interval_of_the_difference(model, validation):
    rows = {row["score"]: row for row in validation.measured["card"]}
    assert list(rows) == ["roc_auc", "balanced_accuracy", "sensitivity", "specificity"]
    card = model.performance["metrics"]["roc_auc"]
    here = validation.measured["metrics"]["roc_auc"]
    difference = here["mean"] - card["mean"]
    low = difference - np.hypot(here["mean"] - here["low"], card["high"] - card["mean"])
    high = difference + np.hypot(here["high"] - here["mean"], card["mean"] - card["low"])
    close(rows["roc_auc"]["difference"], [difference, low, high])


def test_groups_are_scored_by_their_participants_and_conditions_by_their_samples(
    model, other, validation
):
    groups = {(g["by"], g["group"]): g for g in validation.measured["clinical"]["groups"]}
    frame = validation.predictions.dropna(subset="predicted").set_index("subject")
    men = [f"s{i:02d}" for i in range(62) if i % 3 == 0]
    frame = frame[frame.index.isin(men)]
    found = roc_auc_score(frame["true"] == "MDD", frame["probability of MDD"])
    assert groups["sex", "m"]["auc"]["mean"] == pytest.approx(found)
    assert sum(groups["sex", "m"]["n_subjects"]) == len(frame)
    alone = validate(model, other.select_conditions(["eyes open"])).measured
    condition = groups["condition", "eyes open"]
    assert condition["auc"] == alone["metrics"]["roc_auc"]
    assert condition["scores"] == alone["clinical"]["scores"]


def test_case_mix_events_and_who_was_left_out(validation):
    measured, frame = validation.measured, validation.predictions
    assert measured["left_out"] == {"without_channel": ["s01"], "trained_on": []}
    assert measured["events"] == {"smaller_class": 19, "enough": 100}
    unusual = frame["distance"].dropna() > 1
    assert measured["case_mix"]["unusual"]["mean"] == pytest.approx(unusual.mean())
    assert measured["case_mix"]["expected"] == pytest.approx(0.01)


def test_participants_that_were_trained_on_are_named_and_left_out():
    table = make_cohort(30, effect=1.2)
    model = fit_model(table, remember_participants=True)
    other = make_cohort(20, effect=0.5, seed=3)
    X = pd.concat([table.X[:40], other.X], ignore_index=True)
    subjects = [*table.subjects[:40], *("new " + other.subjects)]
    both = FeatureTable(X, [*table.y[:40], *other.y], subjects)
    measured = validate(model, both).measured
    assert measured["left_out"]["trained_on"] == [f"s{number:02d}" for number in range(10)]
    assert measured["metrics"] == validate(model, other).measured["metrics"]
    assert not any("single participants" in note for note in measured["notes"])
    forgetful = validate(fit_model(table), other).measured
    assert "whether single participants were trained on is not known" in forgetful["notes"][0]
    every = validate(model, both, include_training=True).measured
    assert sum(every["n_subjects"].values()) == 30
    assert every["left_out"]["trained_on"] == []
    with pytest.raises(InputError, match="was trained on all 30 participants of this table"):
        validate(model, table)


def test_participants_far_outside_are_scored_and_counted(model, other):
    validation = validate(model, replace_values(other, "s00", 1e3))
    assert validation.measured["case_mix"]["n_far_outside"] == 1
    assert sum(validation.measured["n_subjects"].values()) == 50


def test_a_model_without_card_has_nothing_beside_and_no_slope_where_classes_are_apart():
    table = make_cohort(16, effect=8.0)
    measured = validate(fit_model(table), make_cohort(12, effect=8.0, seed=1)).measured
    assert measured["card"] == []
    assert measured["metrics"]["roc_auc"]["mean"] == 1
    assert measured["metrics"]["roc_auc"]["low"] < 0.9
    assert measured["calibration"]["slope"] is None


def test_what_cannot_be_validated_is_refused(model, other):
    renamed = FeatureTable(other.X, other.y.replace("MDD", "depressed"), other.subjects)
    with pytest.raises(InputError, match="labels are HC and depressed, and the model predicts HC"):
        validate(model, renamed)
    with pytest.raises(InputError, match="two participants of each class"):
        validate(model, other.take((other.y == "HC").to_numpy()))
    three = fit_model(make_cohort(12, n_classes=3))
    with pytest.raises(InputError, match="there are 0 BD, 31 HC and 19 MDD"):
        validate(three, other)
    with pytest.raises(InputError, match="prevalence is 2"):
        validate(model, other, prevalence=2.0)
