import numpy as np
import pandas as pd
import pytest

from idfsmec.evaluation import compare_ranks
from idfsmec.report import plot_ablation, plot_cost, plot_critical_difference
from idfsmec.report._ablation import ablation_table
from idfsmec.report._cost import cost_table
from tests.report.tidy import by_gid, make_scores, texts

PARTS = {
    (method, rate, 5): mean - rate / 10
    for method, mean in [("no redundancy", 0.70), ("IDFS-MEC", 0.80), ("no correction", 0.78)]
    for rate in (0.1, 0.3)
}


class TestAblation:
    def test_the_whole_method_comes_first_and_means_are_over_rates(self):
        table = ablation_table(make_scores(PARTS), "balanced_accuracy")
        assert table["method"].iloc[0] == "IDFS-MEC"
        means = dict(zip(table["method"], table["mean"], strict=True))
        assert means == pytest.approx(
            {"IDFS-MEC": 0.78, "no redundancy": 0.68, "no correction": 0.76}
        )

    def test_differences_are_paired_by_fold(self):
        table = ablation_table(make_scores(PARTS, spread=0.2), "balanced_accuracy")
        row = table[table["method"] == "no redundancy"].iloc[0]
        assert row["difference"] == pytest.approx(-0.1)
        # Folds differ by far more than the variants within a fold, which all agree on -0.1.
        assert row["difference_high"] - row["difference_low"] == pytest.approx(0, abs=1e-9)

    def test_published_values_stand_beside_ours_where_the_paper_has_them(self):
        ax = plot_ablation(make_scores(PARTS), n_channels=64)
        line = next(line for line in ax.lines if str(line.get_label()).startswith("published"))
        assert line.get_xdata()[0] == pytest.approx(0.955)
        assert np.isnan(line.get_xdata()[2])  # the paper has no "no correction"

    def test_without_published_values_nothing_is_drawn_for_them(self):
        ax = plot_ablation(make_scores(PARTS), n_channels=19)
        assert ax.get_legend() is None

    def test_dots_are_the_means(self):
        ax = plot_ablation(make_scores(PARTS), chance={"chance": 0.5, "low": 0.4, "high": 0.6})
        assert by_gid(ax, "ablation-no redundancy")[0].get_xdata() == pytest.approx([0.68])
        assert by_gid(ax, "chance")

    def test_variants_without_the_whole_method_have_no_difference(self):
        scores = make_scores({("no redundancy", 0.1, 5): 0.7})
        assert ablation_table(scores, "balanced_accuracy")["difference"].isna().all()


def timed(method, n_channels, seconds):
    rows = make_scores({(method, 0.3, 5): 0.7}, experiment="cost", n_channels=n_channels)
    return rows.assign(seconds=seconds, table=f"t, {n_channels} channels")


class TestCost:
    def test_a_unit_counts_once_whatever_the_number_of_ks(self):
        scores = make_scores({("mRMR", 0.3, 5): 0.7, ("mRMR", 0.3, 10): 0.7}, n_folds=3)
        scores["seconds"] = scores["fold"].map({0: 1.0, 1: 2.0, 2: 9.0})
        row = cost_table(scores).iloc[0]
        assert (row["median"], row["least"], row["most"]) == (2, 1, 9)

    def test_the_fastest_at_the_largest_size_comes_first(self):
        scores = pd.concat([timed("A", 3, 0.1), timed("A", 64, 5.0), timed("B", 3, 0.2),
                            timed("B", 64, 1.0)])  # fmt: skip
        assert list(cost_table(scores)["method"]) == ["B", "B", "A", "A"]

    def test_published_seconds_stand_where_the_number_of_channels_is_the_papers(self):
        scores = pd.concat([timed("IDFS-MEC", 64, 0.05), timed("IDFS-MEC", 19, 0.01)])
        table = cost_table(scores).set_index("n_channels")["published"]
        assert table[64] == 0.682
        assert np.isnan(table[19])
        drawn = by_gid(plot_cost(scores), "published")[0].get_offsets()
        assert np.asarray(drawn).tolist() == [[0.682, 0]]

    def test_dots_are_medians_on_a_logarithmic_scale(self):
        ax = plot_cost(pd.concat([timed("IDFS-MEC", 8, 0.05), timed("ReliefF", 8, 2.0)]))
        assert ax.get_xscale() == "log"
        assert np.asarray(by_gid(ax, "cost-ReliefF")[0].get_offsets()).tolist() == [[2.0, 1.0]]


class TestCriticalDifference:
    scores = pd.DataFrame(
        np.random.default_rng(0).random((12, 4)) + [0.9, 0.6, 0.3, 0.0],
        columns=["IDFS-MEC", "mRMR", "CMIM", "random"],
    )

    def test_methods_are_written_with_their_mean_ranks(self):
        comparison = compare_ranks(self.scores)
        written = texts(plot_critical_difference(comparison))
        for method, rank in zip(comparison.methods, comparison.mean_ranks, strict=True):
            assert any(method in text and f"{rank:.2f}" in text for text in written)

    def test_bars_join_exactly_the_groups(self):
        comparison = compare_ranks(self.scores)
        ranks = dict(zip(comparison.methods, comparison.mean_ranks, strict=True))
        bars = by_gid(plot_critical_difference(comparison), "group")
        drawn = [tuple(bar.get_xdata()) for bar in bars]
        expected = [
            (min(ranks[m] for m in group), max(ranks[m] for m in group))
            for group in comparison.groups
        ]
        assert np.array(drawn) == pytest.approx(np.array(expected))

    def test_the_critical_difference_is_drawn_to_scale(self):
        comparison = compare_ranks(self.scores)
        bar = by_gid(plot_critical_difference(comparison), "critical-difference")[0]
        assert np.ptp(bar.get_xdata()) == pytest.approx(comparison.critical_difference)
