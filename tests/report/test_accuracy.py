import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from idfsmec.metrics import fold_interval
from idfsmec.report import plot_accuracy_by_rate
from tests.report.tidy import by_gid, draw, fake_results, make_scores, texts

BY_RATE = {
    ("IDFS-MEC", 0.0, 5): 0.80,
    ("IDFS-MEC", 0.3, 5): 0.75,
    ("mRMR", 0.0, 5): 0.78,
    ("mRMR", 0.3, 5): 0.66,
    ("random", 0.0, 5): 0.55,
    ("random", 0.3, 5): 0.52,
}


def line_of(ax, method):
    return by_gid(ax, f"line-{method}")[0]


def test_lines_show_the_means_of_every_method():
    ax = plot_accuracy_by_rate(make_scores(BY_RATE))
    assert line_of(ax, "IDFS-MEC").get_ydata() == pytest.approx([0.80, 0.75])
    assert line_of(ax, "mRMR").get_ydata() == pytest.approx([0.78, 0.66])
    assert line_of(ax, "IDFS-MEC").get_xdata() == pytest.approx([0.0, 0.3])


def test_other_methods_are_drawn_near_their_rate():
    ax = plot_accuracy_by_rate(make_scores(BY_RATE))
    for method in ("mRMR", "random"):
        assert np.abs(line_of(ax, method).get_xdata() - [0.0, 0.3]).max() < 0.05


def test_bars_are_the_corrected_intervals():
    scores = make_scores(BY_RATE, spread=0.05)
    ax = plot_accuracy_by_rate(scores)
    own = scores[(scores["method"] == "mRMR") & (scores["rate"] == 0.3)]
    expected = fold_interval(own["subject_balanced_accuracy"], 20)
    drawn = [
        segment[:, 1]
        for bars in ax.collections
        if hasattr(bars, "get_segments")
        for segment in bars.get_segments()
    ]
    assert any(np.allclose(ends, [expected.low, expected.high]) for ends in drawn)


def test_only_what_tuning_chose_counts():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.8, ("IDFS-MEC", 0.0, 10): 0.9})
    scores["chosen"] = scores["k"] == 5
    ax = plot_accuracy_by_rate(scores)
    assert line_of(ax, "IDFS-MEC").get_ydata() == pytest.approx([0.8])


def test_chance_is_a_line_at_its_level():
    ax = plot_accuracy_by_rate(make_scores(BY_RATE), chance=0.5)
    (line,) = by_gid(ax, "chance")
    assert list(line.get_ydata()) == [0.5, 0.5]
    assert "chance" in texts(ax)


def test_every_method_is_named_beside_its_line_and_apart_from_the_others():
    values = {(f"m{i}", rate, 5): 0.7 + i / 1000 for i in range(12) for rate in (0.0, 0.3)}
    ax = plot_accuracy_by_rate(make_scores(values))
    labels = [text for text in ax.texts if text.get_text().startswith("m")]
    assert len(labels) == 12
    ax.figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in labels), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 2 for low, high in itertools.pairwise(boxes))


def test_the_note_is_on_the_figure():
    ax = plot_accuracy_by_rate(make_scores(BY_RATE), note="subject-wise folds · nested tuning")
    assert "subject-wise folds · nested tuning" in texts(ax)


def test_it_draws_into_the_axes_given():
    _, own = plt.subplots()
    assert plot_accuracy_by_rate(make_scores(BY_RATE), ax=own) is own


def test_accuracy_by_k_shows_one_point_per_k_averaged_over_rates():
    values = {("IDFS-MEC", rate, k): 0.6 + k / 100 - rate / 10
              for rate in (0.0, 0.2) for k in (5, 10, 20)}  # fmt: skip
    ax = draw(fake_results(make_scores(values)), "accuracy-by-k")
    line = line_of(ax, "IDFS-MEC")
    assert line.get_xdata() == pytest.approx([5, 10, 20])
    assert line.get_ydata() == pytest.approx([0.64, 0.69, 0.79])


def test_a_method_without_k_runs_level_across_the_others():
    values = {
        ("IDFS-MEC", 0.0, 5): 0.7,
        ("IDFS-MEC", 0.0, 10): 0.8,
        ("all features", 0.0, 144): 0.75,
    }
    ax = draw(fake_results(make_scores(values)), "accuracy-by-k")
    level = line_of(ax, "all features")
    assert level.get_ydata() == pytest.approx([0.75, 0.75])
    assert level.get_xdata() == pytest.approx([5, 10], abs=1)
    assert ax.get_xlim()[1] < 20


def test_curves_over_k_follow_the_setting_that_was_chosen():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7, ("IDFS-MEC", 0.0, 10): 0.8})
    other = scores.assign(params='{"lam": 9}', subject_balanced_accuracy=0.1, chosen=False)
    scores["chosen"] = scores["k"] == 5
    both = pd.concat([scores, other], ignore_index=True)
    ax = draw(fake_results(both), "accuracy-by-k")
    assert line_of(ax, "IDFS-MEC").get_ydata() == pytest.approx([0.7, 0.8])


def barred(ax):
    """Colours of the vertical bars, of which one collection belongs to each method with any."""
    return [bars for bars in ax.collections if hasattr(bars, "get_segments")]


def test_of_many_methods_the_best_two_and_the_sanity_checks_have_intervals():
    means = {f"m{i}": 0.6 + i / 100 for i in range(8)} | {"IDFS-MEC": 0.5, "random": 0.4}
    methods = {f"m{i}": {"family": "filter"} for i in range(8)}
    methods |= {"IDFS-MEC": {"family": "proposed"}, "random": {"family": "sanity"}}
    scores = make_scores({(m, r, 5): mean for m, mean in means.items() for r in (0.0, 0.3)})
    ax = plot_accuracy_by_rate(scores, methods=methods)
    assert len(barred(ax)) == 3
    widths = {method: line_of(ax, method).get_linewidth() for method in means}
    assert all(widths[f"m{i}"] < widths["m6"] == widths["m7"] for i in range(6))
    assert "thin: means of the other 6 methods" in " ".join(texts(ax)).replace("\n", " ")


def test_few_methods_all_have_intervals_and_need_no_explanation():
    ax = plot_accuracy_by_rate(make_scores(BY_RATE))
    assert len(barred(ax)) == 2
    assert not any("thin" in text for text in texts(ax))
