import numpy as np
import pandas as pd

from idfsmec.report import plot_cost, summarise
from tests.report.tidy import by_gid, fake_results, make_scores


def timed(method, n_channels, seconds):
    rows = make_scores({(method, 0.3, 5): 0.7}, experiment="cost", n_channels=n_channels)
    return rows.assign(seconds=seconds)


def cost_rows(scores):
    return summarise(fake_results(scores.assign(experiment="cost")))["tables"][0]["cost"]


def test_a_unit_counts_once_whatever_the_number_of_ks():
    scores = make_scores({("mRMR", 0.3, 5): 0.7, ("mRMR", 0.3, 10): 0.7}, n_folds=3)
    scores["seconds"] = scores["fold"].map({0: 1.0, 1: 2.0, 2: 9.0})
    row = cost_rows(scores)[0]
    assert (row["median"], row["least"], row["most"]) == (2, 1, 9)


def test_the_fastest_at_the_largest_size_comes_first():
    scores = pd.concat([timed("A", 3, 0.1), timed("A", 64, 5.0), timed("B", 3, 0.2),
                        timed("B", 64, 1.0)])  # fmt: skip
    assert [row["method"] for row in cost_rows(scores)] == ["B", "B", "A", "A"]


def test_published_seconds_stand_at_all_channels_of_the_data_set():
    scores = pd.concat([timed("IDFS-MEC", 64, 0.05), timed("IDFS-MEC", 19, 0.01)])
    drawn = by_gid(plot_cost(scores, published={"IDFS-MEC": 0.682}), "published")[0]
    assert np.asarray(drawn.get_offsets()).tolist() == [[0.682, 0]]


def of_64_channels(name, data_set):
    scores = pd.concat([timed("IDFS-MEC", 64, 0.05), timed("IDFS-MEC", 19, 0.01)])
    table = {"channels": [f"E{i}" for i in range(64)], "features": ["a"]}
    results = fake_results(scores.assign(table=name), tables={name: table}, data_set=data_set)
    rows = summarise(results)["tables"][0]["cost"]
    return {row["n_channels"]: row["published"] for row in rows}


def test_only_a_reproduced_data_set_has_published_seconds():
    assert of_64_channels("pred-d003", "pred-d003") == {19: None, 64: 0.682}
    assert of_64_channels("pred-d003", None) == {19: None, 64: None}
    # Somebody's own table, added to a folder that holds a reproduction.
    assert of_64_channels("my own", "pred-d003") == {19: None, 64: None}


def test_dots_are_medians_on_a_logarithmic_scale():
    ax = plot_cost(pd.concat([timed("IDFS-MEC", 8, 0.05), timed("ReliefF", 8, 2.0)]))
    assert ax.get_xscale() == "log"
    assert np.asarray(by_gid(ax, "cost-ReliefF")[0].get_offsets()).tolist() == [[2.0, 1.0]]
