import dataclasses

import numpy as np
import pandas as pd
import pytest

from idfsmec.report import summarise
from tests.report.tidy import by_gid, draw, fake_results, make_scores, texts

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


def of_data_set(scores, name, data_set, channels=("F3", "O1")):
    """Results of a table, which may be the reproduction of one of the paper's data sets."""
    results = fake_results(scores.assign(table=name), data_set=data_set)
    table = results.tables["t"] | {"channels": list(channels)}
    return dataclasses.replace(results, tables={name: table})


def test_only_a_reproduced_data_set_has_published_accuracies():
    scores = make_scores(PARTS, experiment="ablation")
    for data_set, expected in (("pred-d003", 0.9056), (None, None)):
        results = of_data_set(scores, "pred-d003", data_set)
        rows = {row["method"]: row for row in summarise(results)["tables"][0]["ablation"]}
        assert rows["no redundancy"]["published"] == expected
        assert rows["no correction"]["published"] is None


def test_lines_are_the_means_by_missing_rate():
    ax = draw(fake_results(make_scores(PARTS, experiment="ablation")), "ablation")
    (line,) = by_gid(ax, "line-no redundancy")
    assert line.get_ydata() == pytest.approx([0.69, 0.67])
    assert by_gid(ax, "chance")


def test_variants_without_the_whole_method_have_no_difference():
    scores = make_scores({("no redundancy", 0.1, 5): 0.7})
    assert ablation_rows(scores)["no redundancy"]["difference"] is None


def test_a_line_for_each_gamma_shows_means_over_folds_and_k():
    parts = []
    for i, lam in enumerate((0.1, 1.0, 10.0)):
        for j, gamma in enumerate((2.0, 5.0)):
            mean = 0.6 + 0.05 * i + 0.01 * j
            rows = make_scores({("IDFS-MEC", 0.3, k): mean for k in (5, 10)})
            parts.append(rows.assign(lam=lam, gamma=gamma, params=f"{lam} {gamma}", chosen=False))
    scores = pd.concat(parts, ignore_index=True).assign(experiment="sensitivity")
    ax = draw(fake_results(scores), "sensitivity")
    (line,) = by_gid(ax, "line-γ = 5")
    assert line.get_ydata() == pytest.approx([0.61, 0.66, 0.71])
    assert line.get_xdata() == pytest.approx([0.1, 1.0, 10.0], rel=0.2)
    ax.figure.draw_without_rendering()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "1", "10"]
    assert {"γ = 2", "γ = 5"} <= set(texts(ax))


@pytest.mark.parametrize("n", [5, 200])
def test_convergence_shows_the_objective_after_each_iteration(n):
    history = 1 + 1 / np.arange(1, n + 1)
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7})
    ax = draw(fake_results(scores, convergence={"t": history.tolist()}), "convergence")
    assert ax.lines[0].get_ydata() == pytest.approx(history / 2)  # of its first value
    assert ax.lines[0].get_xdata() == pytest.approx(np.arange(n))
    assert any(f"in {n - 1} iterations" in text for text in texts(ax))


def timed(method, n_channels, seconds):
    rows = make_scores({(method, 0.3, 5): 0.7}, experiment="cost", n_channels=n_channels)
    return rows.assign(seconds=seconds)


def cost_rows(scores):
    return summarise(fake_results(scores.assign(experiment="cost")))["tables"][0]["cost"]


def test_a_unit_counts_once_whatever_the_number_of_ks():
    scores = make_scores({("mRMR", 0.3, 5): 0.7, ("mRMR", 0.3, 10): 0.7}, n_folds=3)
    scores["seconds"] = scores["fold"].map({0: 1.0, 1: 2.0, 2: 9.0})
    row = cost_rows(scores)[0]
    assert (row["mean"], row["low"], row["high"]) == (2, 1, 9)


def test_the_fastest_at_the_largest_size_comes_first():
    scores = pd.concat([timed("A", 3, 0.1), timed("A", 64, 5.0), timed("B", 3, 0.2),
                        timed("B", 64, 1.0)])  # fmt: skip
    assert [row["method"] for row in cost_rows(scores)] == ["B", "B", "A", "A"]


def of_64_channels(name, data_set):
    scores = pd.concat([timed("IDFS-MEC", 64, 0.05), timed("IDFS-MEC", 19, 0.01)])
    results = of_data_set(scores, name, data_set, [f"E{i}" for i in range(64)])
    rows = summarise(results)["tables"][0]["cost"]
    return {row["n_channels"]: row["published"] for row in rows}


def test_only_a_reproduced_data_set_has_published_seconds():
    assert of_64_channels("pred-d003", "pred-d003") == {19: None, 64: 0.682}
    assert of_64_channels("pred-d003", None) == {19: None, 64: None}
    # Somebody's own table, added to a folder that holds a reproduction.
    assert of_64_channels("my own", "pred-d003") == {19: None, 64: None}


def test_lines_are_medians_on_a_logarithmic_scale():
    scores = pd.concat([timed("IDFS-MEC", 8, 0.05), timed("ReliefF", 8, 2.0)])
    ax = draw(fake_results(scores), "cost")
    assert ax.get_yscale() == "log"
    assert by_gid(ax, "line-ReliefF")[0].get_ydata() == pytest.approx([2.0])
