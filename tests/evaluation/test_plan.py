"""The plan of a study says what simulated studies of that size find."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.evaluation import StudyPlan
from idfsmec.evaluation.plan import _FOLD_VARIANCE as FOLD_VARIANCE
from idfsmec.evaluation.plan import TARGETS
from idfsmec.evaluation.statistics import power
from idfsmec.metrics import auc_interval, detectable_auc, expected_critical_p, fold_interval
from idfsmec.report import plot_plan, write_plan
from idfsmec.report.plan import FILES, describe_plan


@pytest.mark.parametrize(("shift", "df", "n_tests"), [(2.5, 9, 1), (3.0, 9, 13), (0.0, 4, 2)])
def test_power_is_the_share_of_t_statistics_beyond_the_limit(shift, df, n_tests):
    rng = np.random.default_rng(0)
    t = (rng.normal(shift, 1, 400_000)) / np.sqrt(rng.chisquare(df, 400_000) / df)
    found = (2 * stats.t.sf(np.abs(t), df) < 0.05 / n_tests).mean()
    assert power(0.1 * shift, 0.1, df, n_tests) == pytest.approx(found, abs=3e-3)


def test_without_any_error_each_difference_is_found():
    assert (power(0.1, 0.0, 9), power(0.0, 0.0, 9)) == (1.0, 0.0)


def test_power_far_from_zero_is_one():
    assert [power(d, 0.01, 9, 13) for d in (0.1, 0.15, 0.3, 5.0)] == pytest.approx(
        [1] * 4, abs=1e-4
    )


@pytest.mark.parametrize(("n_ill", "n_well"), [(30, 30), (20, 60)])
def test_an_auc_that_can_be_detected_is_found_in_four_of_five_studies(n_ill, n_well):
    rng = np.random.default_rng(0)
    critical_p = 0.002
    auc = detectable_auc(n_ill, n_well, critical_p)
    shift = np.sqrt(2) * stats.norm.ppf(auc)
    ill, well = rng.normal(shift, 1, (n_ill, 4000)), rng.normal(0, 1, (n_well, 4000))
    p = stats.mannwhitneyu(ill, well, axis=0, method="asymptotic").pvalue
    assert (p < critical_p).mean() == pytest.approx(0.8, abs=0.03)


def test_the_width_of_an_interval_is_that_of_scores_with_the_planned_spread():
    """Fold scores with the variance that Hanley and McNeil give to folds of ten participants."""
    plan = StudyPlan(auc=0.75)
    q1, q2 = 0.75 / 1.25, 2 * 0.75**2 / 1.75
    variance = (0.75 * 0.25 + 4 * (q1 - 0.75**2) + 4 * (q2 - 0.75**2)) / 25
    scores = np.tile([-1.0, 1.0], 15).reshape(3, 10)
    scores *= np.sqrt(FOLD_VARIANCE * variance) / scores.std(ddof=1)
    found = fold_interval(0.75 + scores, 100)
    assert plan.interval_width(100) == pytest.approx(found.high - found.low)


def test_a_validation_has_newcombes_interval_and_a_hundred_of_the_rarer_class():
    plan = StudyPlan(auc=0.8, share=0.25)
    low, high = auc_interval(0.8, 60, 180)
    assert plan.validation_width(240) == high - low
    assert plan.needed.set_index("aim").loc["events", "participants"] == 400


def test_a_stable_feature_is_selected_on_three_quarters_of_halves():
    rng = np.random.default_rng(0)
    plan = StudyPlan(n_features=200, n_selected=12)
    n, hits = 100, []
    effect = np.sqrt(2) * stats.norm.ppf(plan.stable_feature(n))
    for _ in range(400):
        X = rng.normal(size=(n // 2, 200))
        X[: n // 4, 0] += effect
        t = np.abs(stats.ttest_ind(X[: n // 4], X[n // 4 :]).statistic)
        hits.append((t > t[0]).sum() < 6)  # others have six places
    assert np.mean(hits) == pytest.approx(0.75, abs=0.06)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_as_many_participants_are_needed_as_reach_the_target(share):
    plan = StudyPlan(auc=0.7, share=share, n_comparisons=3)
    needed = {(aim, target): n for aim, target, n in plan.needed.itertuples(index=False)}
    assert list(needed) == [(aim, target) for aim in TARGETS for target in TARGETS[aim]]
    names = {
        "interval": "interval_width",
        "fact": "detectable_fact",
        "feature": "stable_feature",
        "validation": "validation_width",
    }
    for aim, name in names.items():
        for target in TARGETS[aim]:
            n = int(needed[aim, target])
            assert getattr(plan, name)(n) <= target
            if name != "validation_width":  # which counts whole patients
                assert getattr(plan, name)(n - 1) > target
    for target in TARGETS["difference"]:
        n = int(needed["difference", target])
        assert plan.power(n, target) >= 0.8 > plan.power(n - 1, target)


def test_more_participants_show_more_and_more_tests_less():
    curves = StudyPlan().by_participants.set_index("participants")
    for name in curves:
        steps = np.diff(curves[name])
        assert (steps >= 0).all() if name.startswith("difference") else (steps < 0).all()
    more = StudyPlan(n_facts=30, n_comparisons=13, n_features=1000).by_participants
    more = more.set_index("participants")
    assert (more["fact"] > curves["fact"]).all()
    assert (more["feature"] > curves["feature"]).all()
    assert (more.loc[:600, "difference_0.15"] < curves.loc[:600, "difference_0.15"]).all()
    assert StudyPlan(share=0.05).by_participants["participants"].min() == 40
    assert expected_critical_p(1) == 0.025 / 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"auc": 0.5}, "auc=0.5: give a number from 0.51 to 0.99"),
        ({"share": 1.0}, "share=1.0"),
        ({"n_facts": 0}, "n_facts=0: give 1 or more"),
        ({"n_features": 20}, "n_features=20: give 21 or more"),
    ],
)
def test_impossible_studies_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        StudyPlan(**wrong)


def test_what_cannot_be_reached_is_stated():
    plan = StudyPlan(share=0.01, n_comparisons=1000)
    assert plan.needed["participants"].isna().any()
    assert any("more than 100,000" in text for text in describe_plan(plan))


def test_the_command_writes_tables_and_a_figure_and_says_each_in_a_sentence(tmp_path):
    run = CliRunner().invoke(app, ["plan", "--facts", "12", "--out", str(tmp_path / "plan")])
    assert run.exit_code == 0, run.output
    assert run.output.splitlines()[-1] == "next: idfsmec features FOLDER"
    assert {path.name for path in (tmp_path / "plan").iterdir()} == set(FILES)
    plan = StudyPlan()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "plan" / "plan.csv"), plan.needed)
    text = " ".join(run.output.split())
    for sentence in describe_plan(plan):
        assert " ".join(sentence.split()) in text
    again = CliRunner().invoke(app, ["plan", "--out", str(tmp_path / "plan")])
    assert again.exit_code == 2
    wrong = CliRunner().invoke(app, ["plan", "--facts", "0", "--out", str(tmp_path / "other")])
    assert wrong.exit_code == 2
    assert "--facts 0: give 1 or more" in wrong.stderr
    with pytest.raises(ExistingFileError):
        write_plan(plan, tmp_path / "plan")


def test_the_figure_has_a_line_for_each_curve():
    plan = StudyPlan()
    figure = plot_plan(plan)
    drawn = [line.get_ydata() for ax in figure.axes for line in ax.lines]
    curves = plan.by_participants
    order = ["interval", "validation", "difference_0.15", "difference_0.1", "difference_0.05"]
    for values, name in zip(drawn, [*order, "fact", "feature"], strict=True):
        np.testing.assert_allclose(values, curves[name])
