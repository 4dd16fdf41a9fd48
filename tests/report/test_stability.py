"""How stable the selection is: in sentences, drawn, and in the ranked table."""

import dataclasses

import numpy as np
import pytest

from idfsmec.evaluation import Results
from idfsmec.report import plot_selection_frequency, summarise, write_report


@pytest.fixture
def change(results):
    """Results whose halves of the subjects came out otherwise."""

    def changed(**changes):
        own = {**results.resampling["cohort"], **changes}
        return dataclasses.replace(results, resampling={"cohort": own})

    return changed


def test_the_findings_name_the_stable_features(results):
    findings = summarise(results)["tables"][0]["findings"]
    found = results.resampling["cohort"]
    stable = {name for name, share in found["frequency"].items() if share >= found["threshold"]}
    assert stable
    assert len(findings["resampling"]["stable_features"]) == len(stable)
    assert f": {len(stable)} of 32; " in findings["stability_text"]
    assert "at most 1 is expected by chance" in findings["stability_text"]


def test_rows_of_the_ranking_say_how_often_halves_selected_them(results):
    found = results.resampling["cohort"]
    for row in summarise(results)["tables"][0]["ranking"]:
        share = found["frequency"][f"{row['channel']}__{row['feature']}"]
        assert row["frequency"] == share
        assert row["stable"] is (share >= found["threshold"])


def test_if_no_feature_is_stable_the_page_warns(change):
    summary = summarise(change(threshold=1.01))
    text = summary["tables"][0]["findings"]["stability_text"]
    assert "selected on at least 101" in text
    assert ": 0 of 32; " in text
    assert "No stable feature: cohort" in [warning["title"] for warning in summary["warnings"]]


@pytest.mark.slow
def test_the_page_shows_the_section_the_figures_and_the_column(page, folder):
    html = page.read_text("utf-8")
    assert "Stability of the selection" in html
    assert "In halves" in html
    for name in ("selection-frequency-features", "selection-frequency-channels"):
        assert (folder / "figures" / f"{name}.svg").exists()
        assert (folder / "figures" / f"{name}.png").exists()


@pytest.mark.slow
def test_results_without_halves_have_no_section_on_stability(hostile_page):
    html = hostile_page.read_text("utf-8")
    assert '<section id="stability">' not in html
    assert "In halves" not in html


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figure_files")
def test_halves_that_could_not_be_made_are_explained(results, tmp_path, monkeypatch):
    nothing = {"scores": results.scores[:0], "ranking": results.ranking[:0], "convergence": {}}
    reason = {"cohort": {"reason": "one subject <b>"}}
    lone = dataclasses.replace(results, resampling=reason, **nothing)  # few figures to draw
    monkeypatch.setattr(Results, "read", lambda folder: lone)
    html = write_report(tmp_path).read_text("utf-8")
    assert "Stability cannot be measured: one subject &lt;b&gt;" in html


def test_the_highest_are_drawn_and_what_reaches_the_threshold_stands_out():
    shares = {f"E{i}__a": i / 30 for i in range(31)}
    ax = plot_selection_frequency(shares, threshold=0.9, chance=0.1)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx(np.arange(30, 10, -1) / 30)
    colors = [bar.get_facecolor() for bar in ax.patches]
    assert len(set(colors[:4])) == 1
    assert colors[3] != colors[4]
    assert [line.get_xdata()[0] for line in ax.lines] == [0.9, 0.1]
    assert ax.get_yticklabels()[0].get_text() == "a at E30"
