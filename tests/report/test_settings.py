import numpy as np
import pandas as pd
import pytest

from idfsmec.report import plot_convergence, plot_sensitivity
from tests.report.tidy import by_gid, make_scores, texts


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
