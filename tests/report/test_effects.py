"""Direction and size of features, as the page tells them."""

import pandas as pd
import pytest

from idfsmec.missing import missingness_association
from idfsmec.report import plot_effects, summarise, write_report
from idfsmec.selection import feature_effects
from tests.report.make_results import simulate
from tests.report.tidy import by_gid, fake_results, texts, two_methods

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_figure_files")]


@pytest.fixture
def ranking():
    """One feature significantly higher in y, one not significantly higher in x."""
    return pd.DataFrame(
        {
            "table": "t", "rank": [1, 2], "channel": ["F3", "O1"], "feature": ["a", "b"],
            "score": [0.6, 0.4], "channel_weight": [0.6, 0.4], "feature_weight": [1.0, 1.0],
            "method": "IDFS-MEC", "direction": ["higher in y", "higher in x"],
            "hedges_g": [0.9, -0.2], "hedges_g_low": [0.4, -0.7], "hedges_g_high": [1.4, 0.3],
            "auc": [0.74, 0.55], "auc_low": [0.6, 0.4], "auc_high": [0.85, 0.7],
        }
    )  # fmt: skip


def test_the_forest_has_a_dot_per_feature_and_names_both_sides(ranking):
    ax = plot_effects(ranking, labels=["x", "y"])
    first, second = (by_gid(ax, f"effect-{row}")[0] for row in (0, 1))
    assert first.get_xdata() == pytest.approx([0.9])
    assert first.get_markerfacecolor() == first.get_markeredgecolor() != second.get_color()
    assert second.get_markerfacecolor() != second.get_markeredgecolor()
    assert {"← higher in x", "higher in y →", "0.74  (0.60 to 0.85)"} <= set(texts(ax))
    assert "0.55  (0.40 to 0.70)" in texts(ax)


def test_only_the_first_twenty_are_drawn(ranking):
    many = pd.concat([ranking] * 15, ignore_index=True)
    assert len(plot_effects(many).get_yticks()) == 20


def test_a_ranking_without_effects_is_refused(ranking):
    with pytest.raises(ValueError, match="has no effects"):
        plot_effects(ranking[["channel", "feature"]])


def test_rows_of_the_table_say_the_direction_in_words(ranking):
    (table,) = summarise(fake_results(two_methods(0.8, 0.7), ranking=ranking))["tables"]
    assert table["effect"] == "Hedges' g"
    told = [(row["arrow"], row["direction"], row["excludes_zero"]) for row in table["ranking"]]
    assert told == [("→", "higher in y", True), ("←", "higher in x", False)]


def test_of_three_groups_the_highest_is_named(ranking):
    three = ranking.rename(columns=lambda name: name.replace("hedges_g", "eta_squared"))
    three["direction"] = "highest in y"
    (table,) = summarise(fake_results(two_methods(0.8, 0.7), ranking=three))["tables"]
    assert {(row["arrow"], row["direction"]) for row in table["ranking"]} == {
        ("↑", "highest in y")
    }


def test_the_page_has_direction_size_and_forest(ranking, tmp_path, monkeypatch):
    results = fake_results(two_methods(0.8, 0.7), ranking=ranking)
    monkeypatch.setattr("idfsmec.evaluation.Results.read", lambda _: results)
    html = write_report(tmp_path).read_text("utf-8")
    assert 'id="effects"' in html
    assert '<span aria-hidden="true">→</span> higher in y</td>' in html
    assert "0.90<small>0.40 to 1.40</small>" in html
    assert "higher in x <small>95 % CI includes 0</small>" in html


def test_effects_and_gaps_by_class_are_facts_of_the_run(results):
    table = simulate()
    own = feature_effects(table.X, table.y, table.subjects).set_index("feature")
    ranking = results.ranking.set_index(
        results.ranking["channel"] + "__" + results.ranking["feature"]
    )
    for name in ("hedges_g", "hedges_g_low", "auc", "auc_high"):
        assert ranking[name].to_dict() == pytest.approx(own[name].to_dict())
    assert ranking["direction"].to_dict() == own["direction"].to_dict()
    gaps = pd.DataFrame(results.tables["cohort"]["missing_by_class"])
    expected = missingness_association(table)
    pd.testing.assert_frame_equal(gaps[list(expected)], expected)
