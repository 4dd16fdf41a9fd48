"""Imputers: accuracy curves, and the points each loses."""

import pandas as pd
import pytest

from idfsmec.report import (
    imputation_loss,
    plot_imputation,
    plot_imputation_loss,
    summarise,
    write_report,
)
from tests.report.tidy import by_gid, fake_results, make_scores, texts

pytestmark = pytest.mark.slow

LOST = {"mean": 0.12, "factors": 0.01}


@pytest.fixture
def scores():
    """Each imputer loses what LOST says from 0 to 70 % missing."""
    return pd.concat(
        [
            make_scores(
                {(method, rate, 5): 0.8 - lost * rate / 0.7
                 for method in ("IDFS-MEC", "mRMR") for rate in (0.0, 0.3, 0.7)},
                experiment="imputation", imputer=imputer,
            )
            for imputer, lost in LOST.items()
        ],
        ignore_index=True,
    )  # fmt: skip


def test_every_imputer_has_its_line(scores):
    ax = plot_imputation(scores[scores["method"] == "IDFS-MEC"])
    for imputer, lost in LOST.items():
        (line,) = by_gid(ax, f"line-{imputer}")
        assert line.get_ydata()[[0, -1]] == pytest.approx([0.8, 0.8 - lost])
        assert imputer in texts(ax)


def test_points_lost_are_paired_by_fold_from_the_lowest_to_the_highest_rate(scores):
    found = imputation_loss(scores).set_index(["method", "imputer"])
    for (method, imputer), one in found.iterrows():
        assert one["difference"] == pytest.approx(LOST[imputer]), method
        assert (one["low"], one["high"]) == pytest.approx((LOST[imputer], LOST[imputer]))
    (dot,) = by_gid(plot_imputation_loss(scores), "loss-mRMR-mean")
    assert dot.get_xdata() == pytest.approx([LOST["mean"]])


def test_only_what_tuning_chose_counts(scores):
    worse = scores.assign(balanced_accuracy=0.1, chosen=False, k=9)
    both = pd.concat([scores, worse], ignore_index=True)
    pd.testing.assert_frame_equal(imputation_loss(both), imputation_loss(scores))


def test_sentences_name_what_each_imputer_loses(scores):
    (table,) = summarise(fake_results(scores))["tables"]
    assert table["sentences"]["imputation"]["mRMR"] == [
        "At 70\xa0% missing factors is highest (79.0\xa0%); lower (95 % CI excludes 0): mean "
        "(−11.0 points)."
    ]
    assert table["sentences"]["imputation-loss"][""] == [
        "IDFS-MEC loses, by imputer: factors 1.0 and mean 12.0 points.",
        "mRMR loses, by imputer: factors 1.0 and mean 12.0 points.",
    ]


def test_the_page_has_a_figure_for_each_method_and_one_for_the_losses(
    scores, tmp_path, monkeypatch
):
    monkeypatch.setattr("idfsmec.evaluation.Results.read", lambda _: fake_results(scores))
    html = write_report(tmp_path).read_text("utf-8")
    for slug in ("imputation-idfs-mec", "imputation-mrmr", "imputation-loss"):
        assert f'id="{slug}"' in html
        assert (tmp_path / "figures" / f"{slug}.png").exists()
