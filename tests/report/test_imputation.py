"""Imputers: accuracy curves, and which differ where most is missing."""

import pandas as pd
import pytest

from idfsmec.report import summarise, write_report
from tests.report.tidy import by_gid, draw, fake_results, make_scores, texts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_figure_files")]

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
    ax = draw(fake_results(scores), "imputation", "IDFS-MEC")
    for imputer, lost in LOST.items():
        (line,) = by_gid(ax, f"line-{imputer}")
        assert line.get_ydata()[[0, -1]] == pytest.approx([0.8, 0.8 - lost])
        assert imputer in texts(ax)


def test_a_single_imputer_at_the_highest_rate_is_not_tested(scores):
    parts = scores[(scores["rate"] == 0) == (scores["imputer"] == "mean")]
    assert summarise(fake_results(parts))["tables"][0]["tested"]["imputation"]["mRMR"] == ""


def test_imputers_are_tested_where_most_is_missing(scores):
    worse = scores.assign(
        subject_balanced_accuracy=0.1, chosen=False, k=9
    )  # tuning did not choose it
    both = pd.concat([scores, worse], ignore_index=True)
    (table,) = summarise(fake_results(both))["tables"]
    assert table["tested"]["imputation"]["mRMR"] == (
        "Highest at 70\xa0% missing: factors; lower (significant at 5 % after Holm's correction): "
        "mean (−11.0 points)."
    )


def test_the_page_has_a_figure_for_each_method(scores, tmp_path, monkeypatch):
    monkeypatch.setattr("idfsmec.evaluation.Results.read", lambda _: fake_results(scores))
    html = write_report(tmp_path).read_text("utf-8")
    for slug in ("imputation-idfs-mec", "imputation-mrmr"):
        assert f'id="{slug}"' in html
        assert (tmp_path / "figures" / f"{slug}.png").exists()
