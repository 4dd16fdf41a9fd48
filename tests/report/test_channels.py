import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from idfsmec.report import plot_channel_weights, plot_missing_map, plot_score_heatmap
from tests.report.make_results import CHANNELS
from tests.report.tidy import texts

WEIGHTS = {name: (i + 1) / 36 for i, name in enumerate(CHANNELS)}


def test_channels_with_positions_become_a_scalp_map():
    ax = plot_channel_weights(WEIGHTS)
    assert len(ax.images) == 1
    assert set(CHANNELS) <= set(texts(ax))


def test_frontal_electrodes_are_in_front_and_left_ones_on_the_left():
    ax = plot_channel_weights(WEIGHTS)
    at = {text.get_text(): text.xy for text in ax.texts if text.get_text() in CHANNELS}
    assert at["Fp1"][1] > at["C3"][1] > at["O1"][1]
    assert at["C3"][0] < 0 < at["C4"][0]


def test_the_map_is_strongest_where_the_weight_is():
    heavy = dict.fromkeys(CHANNELS, 0.05) | {"O2": 0.65}
    image = plot_channel_weights(heavy).images[0]
    values = np.ma.filled(image.get_array(), 0)
    row, column = np.unravel_index(values.argmax(), values.shape)
    assert row < values.shape[0] / 2  # the back of the head
    assert column > values.shape[1] / 2  # on the right


def test_the_scale_of_the_map_starts_at_zero():
    low, high = plot_channel_weights(WEIGHTS).images[0].get_clim()
    assert (low, high) == (0.0, max(WEIGHTS.values()))


def test_own_positions_are_used():
    turned = {name: [np.cos(i), np.sin(i), 0.1 * i] for i, name in enumerate("abcdefghij")}
    ax = plot_channel_weights(dict.fromkeys(turned, 0.1), positions=turned)
    at = {text.get_text(): text.xy for text in ax.texts}
    assert at["a"][0] > 0
    assert at["a"][1] == pytest.approx(0)


@pytest.mark.parametrize("names", [("Fp1", "Fpz", "Fp2"), tuple(f"x{i}" for i in range(12))])
def test_few_or_unknown_channels_get_bars(names):
    ax = plot_channel_weights({name: i + 1.0 for i, name in enumerate(names)})
    assert not ax.images
    assert [bar.get_width() for bar in ax.patches] == list(range(len(names), 0, -1))
    assert [label.get_text() for label in ax.get_yticklabels()] == list(reversed(names))


def test_a_channel_without_a_position_is_named():
    ax = plot_channel_weights(WEIGHTS | {"nowhere": 0.1})
    assert any("no position known for: nowhere" in text for text in texts(ax))


def test_a_ring_of_electrodes_makes_no_map_but_bars():
    ring = {name: [np.cos(i), np.sin(i), 0.5] for i, name in enumerate("abcdefghij")}
    ax = plot_channel_weights(dict.fromkeys(ring, 0.1), positions=ring)
    assert not ax.images
    assert len(ax.patches) == 10


def test_an_unknown_montage_falls_back_to_standard_names():
    assert plot_channel_weights(WEIGHTS, montage="no such cap").images


def test_the_heat_map_holds_every_score_strongest_first():
    ranking = pd.DataFrame(
        {
            "channel": ["F3", "F3", "O1", "O1"],
            "feature": ["a", "b", "a", "b"],
            "score": [0.1, 0.2, 0.3, 0.5],
        }
    )
    ax = plot_score_heatmap(ranking)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["O1", "F3"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    assert np.asarray(ax.collections[0].get_array()) == pytest.approx(
        np.array([[0.5, 0.2], [0.3, 0.1]])
    )


def test_a_feature_some_channels_lack_leaves_a_blank_cell():
    ranking = pd.DataFrame({"channel": ["F3", "O1"], "feature": ["a", "b"], "score": [0.1, 0.2]})
    values = plot_score_heatmap(ranking).collections[0].get_array()
    assert np.ma.count_masked(values) == 2


def test_the_missing_map_shows_shares():
    shares = pd.DataFrame({"F3": [0.0, 0.5], "O2": [0.0, 1.0]}, index=["s1", "s2"])
    ax = plot_missing_map(shares)
    assert ax.images[0].get_array().tolist() == shares.to_numpy().tolist()
    assert any("37.5\N{NO-BREAK SPACE}% of all missing" in text for text in texts(ax))


def test_a_cap_of_128_channels_has_no_crowd_of_labels():
    shares = pd.DataFrame(np.zeros((60, 128)), columns=[f"E{i}" for i in range(128)])
    ax = plot_missing_map(shares)
    assert len(ax.get_xticks()) <= 40
    assert len(ax.get_yticks()) <= 20


def test_they_draw_into_the_axes_given():
    _, axes = plt.subplots(1, 2)
    assert plot_channel_weights(WEIGHTS, ax=axes[0]) is axes[0]
    assert plot_missing_map(pd.DataFrame({"F3": [0.1]}), ax=axes[1]) is axes[1]
