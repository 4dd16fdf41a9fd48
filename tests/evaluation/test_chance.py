import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from idfsmec.evaluation.statistics import chance_band, chance_bands

pytestmark = pytest.mark.slow

counts = st.lists(st.integers(1, 4), min_size=2, max_size=3)


def by_counting(clusters, metric, level=0.95):
    """Band from every pattern of right and wrong guesses of the clusters, one list a class."""
    sizes = [sum(c) for c in clusters]
    total = sum(sizes)
    p = max(sizes) / total if metric == "accuracy" else 1 / len(clusters)
    members = [(c, size) for c, own in enumerate(clusters) for size in own]
    scores = {}
    for pattern in itertools.product([0, 1], repeat=len(members)):
        right = [0.0] * len(clusters)
        for hit, (c, size) in zip(pattern, members, strict=True):
            right[c] += hit * size
        if metric == "accuracy":
            score = sum(right) / total
        else:
            score = np.mean([r / s for r, s in zip(right, sizes, strict=True)])
        weight = np.prod([p if hit else 1 - p for hit in pattern])
        key = round(score, 9)
        scores[key] = scores.get(key, 0.0) + weight
    tail = (1 - level) / 2
    below, low, high = 0.0, None, None
    for value, weight in sorted(scores.items()):
        below += weight
        if low is None and below >= tail + 1e-12:
            low = value
        if high is None and below >= 1 - tail - 1e-12:
            high = value
    return low, high


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
@given(class_counts=counts)
def test_the_band_agrees_with_counting_all_guesses(metric, class_counts):
    found = chance_band(class_counts, metric=metric)
    expected = by_counting([[1] * n for n in class_counts], metric)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-8)
    assert found.n == sum(class_counts)


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
@given(clusters=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=2,
                         max_size=3))  # fmt: skip
def test_samples_of_a_subject_are_guessed_alike(metric, clusters):
    labels, subjects = [], []
    for c, own in enumerate(clusters):
        for s, size in enumerate(own):
            labels += [c] * size
            subjects += [f"{c}-{s}"] * size
    found = chance_bands(labels, subjects)[metric]
    assert (found.low, found.high) == pytest.approx(by_counting(clusters, metric), abs=1e-8)
    assert found.n == len(set(subjects))


# Combrisson & Jerbi 2015: binoinv(1 - alpha, n, 1/c) / n, one-sided alpha 0.05; the upper end of
# our two-sided band at level 0.9.
@pytest.mark.parametrize(("n", "threshold"), [(20, 0.70), (40, 0.625), (100, 0.58)])
def test_balanced_classes_give_the_binomial_threshold(n, threshold):
    assert chance_band([n // 2, n // 2], level=0.9).high == pytest.approx(threshold)


@pytest.mark.parametrize("class_counts", [[30, 70], [500, 500], [24, 29]])
def test_accuracy_agrees_with_scipys_binomial(class_counts):
    n, p = sum(class_counts), max(class_counts) / sum(class_counts)
    found = chance_band(class_counts)
    assert found.chance == pytest.approx(p)
    expected = stats.binom.ppf([0.025, 0.975], n, p) / n
    assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_balanced_accuracy_of_many_classes_agrees_with_simulation():
    class_counts = [300, 500, 150, 800]
    found = chance_band(class_counts, metric="balanced_accuracy")
    rng = np.random.default_rng(0)
    simulated = np.mean([rng.binomial(n, 0.25, 200_000) / n for n in class_counts], axis=0)
    expected = np.quantile(simulated, [0.025, 0.975])
    assert found.chance == 0.25
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=5e-4)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=4))
def test_the_band_holds_the_chance_level_and_stays_between_0_and_1(class_counts):
    for metric in ("accuracy", "balanced_accuracy"):
        found = chance_band(class_counts, metric=metric)
        assert 0 <= found.low <= found.chance + 1e-9
        assert found.chance - 1e-9 <= found.high <= 1 + 1e-9


def test_more_people_narrow_the_band():
    widths = [chance_band([n, n]).high - chance_band([n, n]).low for n in (10, 40, 160)]
    assert widths[0] > widths[1] > widths[2]


def test_55_percent_on_53_people_is_inside_the_band():
    bands = chance_bands(["a"] * 24 * 30 + ["b"] * 29 * 30, np.repeat(np.arange(53), 30))
    for name, band in bands.items():
        assert band.low < 0.55 < band.high, name


def test_epochs_do_not_narrow_the_band_when_all_have_as_many():
    labels = np.repeat(["a", "b"], 20)
    once = chance_bands(labels, range(40))
    often = chance_bands(np.repeat(labels, 50), np.repeat(np.arange(40), 50))
    for metric in once:
        assert often[metric].low == pytest.approx(once[metric].low)
        assert often[metric].high == pytest.approx(once[metric].high)


def test_a_subject_counts_under_the_label_most_of_its_samples_have():
    bands = chance_bands(["a", "a", "b", "b", "b", "b"], [1, 1, 1, 2, 2, 3])
    assert bands["subject_accuracy"].chance == pytest.approx(2 / 3)
    assert bands["subject_accuracy"].n == 3


def test_a_class_without_samples_is_refused():
    with pytest.raises(ValueError, match="at least one test sample"):
        chance_band({"a": 3, "b": 0})


def test_an_unknown_metric_or_level_is_refused():
    with pytest.raises(ValueError, match="metric"):
        chance_band([3, 3], metric="f1")
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        chance_band([3, 3], level=95)


def test_uneven_folds_average_the_scores_of_each_one():
    """Hospitals of 3 and 5 people, all guesses counted."""
    labels = list("ab") + ["a"] + list("abab") + ["b"]
    sites = ["Lund"] * 3 + ["Oslo"] * 5
    found = chance_bands(labels, range(8), folds=sites)["subject_balanced_accuracy"]
    where = [np.flatnonzero((np.array(sites) == s) & (np.array(labels) == c))
             for s in ("Lund", "Oslo") for c in "ab"]  # fmt: skip
    scores = {}
    for right in itertools.product([0, 1], repeat=8):
        # Both hospitals have both classes: the mean of four recalls.
        key = round(float(np.mean([np.array(right)[own].mean() for own in where])), 9)
        scores[key] = scores.get(key, 0) + 2.0**-8
    values = np.array(sorted(scores))
    below = np.cumsum([scores[value] for value in values])
    expected = [values[below >= share - 1e-12][0] for share in (0.025, 0.975)]
    assert [found.low, found.high] == pytest.approx(expected, abs=1e-8)
    assert (found.chance, found.n) == (0.5, 8)


def test_one_fold_is_no_fold():
    labels, people = list("aabab") * 4, np.arange(20) // 2
    assert chance_bands(labels, people, folds=["A"] * 20) == chance_bands(labels, people)


def test_a_guesser_knows_the_larger_class_of_each_hospital():
    labels = ["a"] * 3 + ["b"] + ["a"] + ["b"] * 3
    band = chance_bands(labels, range(8), folds=["A"] * 4 + ["B"] * 4)["accuracy"]
    assert band.chance == pytest.approx(0.75)
