"""Intervals of probabilities: of the frequency among people who were held out."""

import numpy as np
import pytest
from scipy.special import expit

from idfsmec.prediction._interval import Intervals


def make_people(n, seed, slope=1.0, shift=0.0, prior=(0.5, 0.5)):
    """What was said about people; it is true with ``slope`` and ``shift`` on its log odds."""
    rng = np.random.default_rng(seed)
    said = expit(1.5 * rng.normal(size=n))
    true = (rng.random(n) < expit(shift + slope * np.log(said / (1 - said)))).astype(int)
    left = np.column_stack([1 - said, said])
    return {"true": true, "prior": list(prior), "shares": [1.0], "left": [left.tolist()]}


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.5, 0.0), (1.0, 0.7)])
def test_the_true_frequency_is_in_nine_of_ten_or_more(slope, shift):
    inside = []
    for seed in range(60):
        held_out = make_people(80, seed, slope, shift)
        held_out["prior"] = (np.bincount(held_out["true"]) / 80).tolist()
        intervals = Intervals(held_out, 0.95)
        for p in (0.1, 0.3, 0.5, 0.7, 0.9):
            low, high = intervals.of(np.full(4, p), 1, 1.0)
            assert low <= p <= high
            inside.append(low <= expit(shift + slope * np.log(p / (1 - p))) <= high)
    assert 0.9 <= np.mean(inside) <= 1.0


def test_more_people_make_it_narrower_and_few_channels_wider():
    few, many = (Intervals(make_people(n, 0), 0.95).of(np.full(4, 0.8), 1, 1.0) for n in (30, 600))
    assert few[1] - few[0] > 2 * (many[1] - many[0])
    held_out = make_people(200, 0)
    guessed = np.random.default_rng(1).permutation(held_out["left"][0]).tolist()
    held_out |= {"shares": [1.0, 0.25], "left": [*held_out["left"], guessed]}
    intervals = Intervals(held_out, 0.95)
    assert intervals.of(np.array([0.9]), 1, 0.9)[0] > 0.7
    assert intervals.of(np.array([0.9]), 1, 0.3)[0] < 0.65


def test_a_rare_class_counts_as_the_models_prior_says():
    held_out = make_people(400, 0)
    rare = np.flatnonzero((held_out["true"] == 0) | (np.arange(400) % 4 == 0))
    fewer = held_out | {
        "true": held_out["true"][rare],
        "left": [[held_out["left"][0][i] for i in rare]],
    }
    low, high = Intervals(fewer, 0.95).of(np.full(4, 0.5), 1, 1.0)
    assert low < 0.5 < high


def test_without_people_held_out_epochs_alone_vary():
    intervals = Intervals(None, 0.95)
    low, high = intervals.of(np.array([0.4, 0.6, 0.5, 0.7]), 0, 1.0)
    assert 0.4 <= low < 0.55 < high <= 0.7
    assert np.isnan(intervals.of(np.array([0.6]), 0, 1.0)).all()
