import numpy as np
import pandas as pd
import pytest

from idfsmec.report import plot_ablation, plot_convergence, plot_sensitivity, summarise
from tests.report.tidy import by_gid, fake_results, make_scores, texts

PARTS = {
    (method, rate, 5): mean - rate / 10
    for method, mean in [("no redundancy", 0.70), ("IDFS-MEC", 0.80), ("no correction", 0.78)]
    for rate in (0.1, 0.3)
}


def ablation_rows(scores):
    results = fake_results(scores.assign(experiment="ablation"))
    return {row["method"]: row for row in summarise(results)["tables"][0]["ablation"]}


def test_the_whole_method_comes_first_and_means_are_over_rates():
    table = ablation_rows(make_scores(PARTS))
    assert next(iter(table)) == "IDFS-MEC"
    assert {method: row["mean"] for method, row in table.items()} == pytest.approx(
        {"IDFS-MEC": 0.78, "no redundancy": 0.68, "no correction": 0.76}
    )


def test_differences_are_paired_by_fold():
    row = ablation_rows(make_scores(PARTS, spread=0.2))["no redundancy"]
    assert row["difference"] == pytest.approx(-0.1)
    # Folds differ by far more than the variants within a fold, which all agree on -0.1.
    assert row["difference_high"] - row["difference_low"] == pytest.approx(0, abs=1e-9)


def test_published_values_stand_beside_ours_where_there_are_any():
    published = {"IDFS-MEC": 0.955, "no redundancy": 0.9056}
    ax = plot_ablation(make_scores(PARTS), published=published)
    line = next(line for line in ax.lines if str(line.get_label()).startswith("published"))
    assert line.get_xdata()[0] == pytest.approx(0.955)
    assert np.isnan(line.get_xdata()[2])


def test_without_published_values_nothing_is_drawn_for_them():
    ax = plot_ablation(make_scores(PARTS))
    assert ax.get_legend() is None


def test_only_a_reproduced_data_set_has_published_accuracies():
    scores = make_scores(PARTS, experiment="ablation", table="pred-d003")
    table = {"channels": ["F3", "O1"], "features": ["a"]}
    for data_set, expected in (("pred-d003", 0.9056), (None, None)):
        results = fake_results(scores, tables={"pred-d003": table}, data_set=data_set)
        rows = {row["method"]: row for row in summarise(results)["tables"][0]["ablation"]}
        assert rows["no redundancy"]["published"] == expected
        assert rows["no correction"]["published"] is None


def test_dots_are_the_means():
    ax = plot_ablation(make_scores(PARTS), chance={"chance": 0.5, "low": 0.4, "high": 0.6})
    assert by_gid(ax, "ablation-no redundancy")[0].get_xdata() == pytest.approx([0.68])
    assert by_gid(ax, "chance")


def test_variants_without_the_whole_method_have_no_difference():
    scores = make_scores({("no redundancy", 0.1, 5): 0.7})
    assert ablation_rows(scores)["no redundancy"]["difference"] is None


def grid_scores():
    parts = []
    for i, lam in enumerate((0.1, 1.0, 10.0)):
        for j, gamma in enumerate((2.0, 5.0)):
            mean = 0.6 + 0.05 * i + 0.01 * j
            rows = make_scores({("IDFS-MEC", 0.3, k): mean for k in (5, 10)})
            parts.append(rows.assign(lam=lam, gamma=gamma, params=f"{lam} {gamma}", chosen=False))
    return pd.concat(parts, ignore_index=True)


def test_cells_are_means_over_folds_and_k():
    ax = plot_sensitivity(grid_scores())
    values = np.asarray(ax.collections[0].get_array())
    assert values == pytest.approx(np.array([[0.60, 0.65, 0.70], [0.61, 0.66, 0.71]]))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "1", "10"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2", "5"]
    assert {"60.0", "71.0"} <= set(texts(ax))


def test_the_best_cell_is_framed():
    frame = by_gid(plot_sensitivity(grid_scores()), "best")[0]
    assert frame.get_xy() == (2, 1)


def test_noise_does_not_look_like_a_landscape():
    scores = grid_scores()
    scores["balanced_accuracy"] = 0.7
    low, high = plot_sensitivity(scores).collections[0].get_clim()
    assert high - low >= 0.03


@pytest.mark.parametrize("n", [5, 200])
def test_convergence_shows_the_objective_after_each_iteration(n):
    history = 1 + 1 / np.arange(1, n + 1)
    ax = plot_convergence(history)
    assert ax.lines[0].get_ydata() == pytest.approx(history)
    assert ax.lines[0].get_xdata() == pytest.approx(np.arange(n))
    assert any(f"in {n - 1} iterations" in text for text in texts(ax))
