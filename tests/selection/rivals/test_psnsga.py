"""PS-NSGA: objectives by definition, dominance, survival, memory and the answer."""

import builtins
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from idfsmec.selection import PSNSGA
from idfsmec.selection.rivals._fronts import ReferenceSurvival, beats, fronts
from idfsmec.selection.rivals.psnsga import cross, mutate
from idfsmec.selection.rivals.subset_fitness import SubsetFitness, draw_by_class, stratified_folds


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


@pytest.fixture
def quick():
    return PSNSGA(n_generations=5, random_state=0)


class PlainFitness:
    """The objectives by their definition, sample by sample."""

    def __init__(self, X, y, folds):
        self.X, self.y, self.folds = X, y, folds
        self.order = np.argsort(folds, kind="stable")

    def __call__(self, masks):
        return np.array([self.of_one(mask) for mask in masks])

    def of_one(self, mask):
        if not mask.any():
            return np.ones(3)
        X, y, samples = self.X[:, mask], self.y, range(len(self.y))
        hit = np.zeros(len(y), dtype=bool)
        for i in samples:
            others = [j for j in self.order if self.folds[j] != self.folds[i]]
            squares = ((X[others] - X[i]) ** 2).sum(axis=1)
            if others:
                hit[i] = y[others[np.flatnonzero(squares <= squares.min() + 1e-12)[0]]] == y[i]
        distance = np.array([np.abs(X - X[i]).sum(axis=1) for i in samples]) / mask.sum()
        within = np.mean([distance[i, y == y[i]].max() for i in samples])
        between = np.mean([distance[i, y != y[i]].min() for i in samples])
        overlap = (1 / (1 + np.exp(-5 * (within - between)))).round(12)
        error = 1 - np.mean([hit[y == code].mean() for code in np.unique(y)])
        return np.array([error, mask.mean(), overlap])


def plain_search(X, y, seed, *, size, n_generations):
    """The first front of the search as it is defined: every child is measured when it is made."""
    rng, seen = np.random.RandomState(seed), set()
    plain = PlainFitness(X, y, stratified_folds(y, 10, rng))

    def fitness(masks):
        seen.update(mask.tobytes() for mask in masks)
        return plain(masks)

    survival = ReferenceSurvival(27, 0.2, rng)
    population = rng.random_sample((size, X.shape[1])) < 0.5
    objectives = fitness(population)
    for _ in range(n_generations):
        last_front = objectives[fronts(objectives, 0.2)[-1]]
        crossed = cross(population, rng)
        children = np.array([mutate(child, rng) for child in crossed])
        found = fitness(children)
        for _ in range(3):
            beaten = np.flatnonzero(beats(last_front, found, 0.2).any(axis=0))
            if not beaten.size:
                break
            children[beaten] = [mutate(child, rng) for child in crossed[beaten]]
            found[beaten] = fitness(children[beaten])
        everyone, values = np.concatenate([population, children]), np.vstack([objectives, found])
        kept = survival.choose(values, size)
        population, objectives = everyone[kept], values[kept]
    first = fronts(objectives, 0.2)[0]
    return population[first], objectives[first], len(seen)


def plain_tables():
    rng = np.random.default_rng(1)
    yield "wine", *(part[::4] for part in load_wine(return_X_y=True))
    X, y = rng.normal(size=(60, 25)), rng.integers(0, 2, 60)
    X[:, :4] += y[:, None]
    yield "normal", X, y
    yield "heavy tails", X**3, y
    yield "whole numbers, many ties", rng.integers(0, 3, size=(50, 9)).astype(float), y[:50]
    yield "samples twice", np.repeat(X[:25], 2, axis=0), rng.integers(0, 2, 50)
    yield "three of a class", X[:40], np.where(np.arange(40) < 3, 2, y[:40])


@pytest.mark.parametrize("table", list(plain_tables()), ids=lambda table: table[0])
def test_the_front_is_that_of_a_plain_search(table):
    _, X, y = table
    scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    for seed in range(2):
        front, objectives, n_seen = plain_search(scaled, y, seed, size=8, n_generations=6)
        found = PSNSGA(population_size=8, n_generations=6, random_state=seed).fit(X, y)
        np.testing.assert_array_equal(found.front_, front)
        np.testing.assert_allclose(found.front_objectives_, objectives, rtol=0, atol=2e-12)
        assert found.n_evaluations_ == n_seen


def test_objectives_follow_their_definition(wine):
    X, y = wine
    folds = stratified_folds(y, 10, np.random.RandomState(0))
    rng = np.random.default_rng(0)
    masks = rng.random((4, 13)) < 0.5
    found = SubsetFitness(X, y, folds)(masks)
    for mask, (error, share, overlap) in zip(masks, found, strict=True):
        guess = np.empty_like(y)
        for fold in range(10):
            inside = folds == fold
            nearest = KNeighborsClassifier(1, algorithm="brute")
            nearest.fit(X[~inside][:, mask], y[~inside])
            guess[inside] = nearest.predict(X[inside][:, mask])
        assert error == pytest.approx(1 - balanced_accuracy_score(y, guess))
        assert share == mask.mean()
        distance = cdist(X[:, mask], X[:, mask], "cityblock") / mask.sum()
        within = np.mean([distance[i, y == y[i]].max() for i in range(len(y))])
        between = np.mean([distance[i, y != y[i]].min() for i in range(len(y))])
        assert overlap == pytest.approx(1 / (1 + np.exp(-5 * (within - between))))


@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=4),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_draws_have_each_class_by_its_share(sizes, share, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    n_asked = round(share * y.size)
    drawn = draw_by_class(y, n_asked, np.random.RandomState(seed))
    assert drawn.size == max(n_asked, len(sizes))
    assert (np.diff(drawn) > 0).all()
    counts = np.bincount(y[drawn], minlength=len(sizes))
    assert (counts >= 1).all()
    # Rounding up for one class may cost another a sample.
    assert (np.abs(counts - drawn.size / y.size * np.array(sizes)) <= len(sizes)).all()


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 40),
    st.integers(1, 12),
    st.integers(2, 4),
    st.integers(1, 6),
    st.sampled_from([1, 3, 1e9]),
)
@settings(max_examples=60, deadline=None)
def test_objectives_are_those_of_their_definition_with_ties_and_odd_folds(
    seed, n_samples, n_features, n_classes, n_folds, n_values
):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, size=(n_samples, n_features), endpoint=True) / n_values
    y = np.unique(
        np.append(rng.integers(0, n_classes, n_samples - 2), [0, 1]), return_inverse=True
    )
    folds = rng.integers(0, n_folds, n_samples)
    masks = rng.random((5, n_features)) < 0.5
    plain = PlainFitness(X, y[1], folds)(masks)
    found = SubsetFitness(X, y[1], folds)
    first = found(masks[:2])
    least = found.bounds(masks)
    np.testing.assert_allclose(np.vstack([first, found(masks[2:])]), plain, rtol=0, atol=2e-12)
    np.testing.assert_allclose(least[:, :2], plain[:, :2], rtol=0, atol=1e-12)
    assert (least[:, 2] <= plain[:, 2] + 2e-12).all()


def test_many_subsets_at_once_have_the_objectives_of_each_alone(wine):
    X, y = wine
    folds = np.arange(len(y)) % 10
    masks = np.random.default_rng(0).random((30, 13)) < 0.4
    together = SubsetFitness(X, y, folds)(masks)
    alone = [SubsetFitness(X, y, folds)(mask[None])[0] for mask in masks]
    np.testing.assert_array_equal(together, alone)


def test_the_empty_subset_is_the_worst(wine):
    fitness = SubsetFitness(*wine, np.arange(178) % 10)
    assert fitness(np.zeros((1, 13), dtype=bool)).tolist() == [[1, 1, 1]]


def test_a_subset_that_turns_up_again_is_not_computed_again(wine, monkeypatch):
    fitness = SubsetFitness(*wine, np.arange(178) % 10)
    masks = np.eye(13, dtype=bool)[[0, 1, 0, 1, 2]]
    first = fitness(masks)
    monkeypatch.setattr(fitness, "_evaluate", lambda masks: pytest.fail("computed again"))
    np.testing.assert_array_equal(fitness(masks[::-1]), first[::-1])
    np.testing.assert_array_equal(fitness.bounds(masks), first)
    fitness.count(masks)
    assert fitness.n_evaluations == 3


def test_folds_are_stratified_even_for_tiny_classes():
    y = np.array([0] * 25 + [1] * 2 + [2] * 11)
    folds = stratified_folds(y, 10, np.random.RandomState(0))
    for c in range(3):
        counts = np.bincount(folds[y == c], minlength=10)
        assert counts.max() - counts.min() <= 1


objective_rows = st.lists(
    st.tuples(*[st.integers(0, 10).map(lambda v: v / 10)] * 3), min_size=1, max_size=25
)


@given(objective_rows)
@settings(max_examples=60)
def test_fronts_hold_everyone_once_and_are_beaten_only_from_ahead(rows):
    values = np.array(rows)
    sorted_fronts = fronts(values, 0.2)
    assert sorted(np.concatenate(sorted_fronts)) == list(range(len(rows)))
    for earlier, front in zip([None, *sorted_fronts], sorted_fronts, strict=False):
        assert not beats(values[front], values[front], 0.2).any()
        if earlier is not None:
            assert beats(values[earlier], values[front], 0.2).any(axis=0).all()


def test_a_clearly_lower_error_beats_everything_else():
    low, high = np.array([[0.1, 1.0, 1.0]]), np.array([[0.3, 0.1, 0.1]])
    assert beats(low, high, 0.2).all()
    assert not beats(high, low, 0.2).any()
    assert not beats(low, high - [[0.01, 0, 0]], 0.2).any()


def test_there_are_406_reference_directions_by_default():
    survival = ReferenceSurvival(PSNSGA().n_divisions, 0.2, np.random.RandomState(0))
    assert survival.directions.shape == (406, 3)


def test_survivors_are_whole_fronts_first():
    rng = np.random.RandomState(0)
    values = rng.random_sample((40, 3))
    sorted_fronts = fronts(values, 0.2)
    chosen = ReferenceSurvival(27, 0.2, rng).choose(values, 15)
    assert len(set(chosen.tolist())) == 15
    n_sure = 0
    for front in sorted_fronts:
        if n_sure + front.size > 15:
            assert set(chosen[n_sure:]) <= set(front.tolist())
            break
        assert set(front.tolist()) <= set(chosen.tolist())
        n_sure += front.size


def test_pymoo_does_not_change_the_warning_filters():
    before = list(warnings.filters)
    ReferenceSurvival(3, 0.2, np.random.RandomState(0)).choose(np.eye(3).repeat(3, axis=0), 5)
    assert list(warnings.filters) == before


def test_crossover_takes_bits_from_parents_only():
    rng = np.random.RandomState(0)
    population = rng.random_sample((30, 40)) < 0.5
    population[:, 0], population[:, 1] = True, False
    children = cross(population, rng)
    assert children[:, 0].all()
    assert not children[:, 1].any()
    assert (children != population).any()


def test_mutation_clears_or_sets_a_tenth_of_the_rarer_kind():
    rng = np.random.RandomState(0)
    child = np.arange(100) < 35
    sizes = {int(mutate(child, rng).sum()) for _ in range(50)}
    assert sizes == {35 - 4, 35 + 4}
    assert mutate(np.zeros(5, dtype=bool), rng).sum() == 0


def test_the_answer_is_the_least_error_of_the_first_front(quick):
    X, y = load_wine(return_X_y=True)
    quick.fit(X, y)
    assert quick.subset_objectives_[0] < 0.1
    assert quick.subset_objectives_[1] == quick.subset_.mean()
    assert 20 <= quick.n_evaluations_ <= 20 * (1 + 5 * 4)


def test_ranks_by_share_of_the_first_front_then_by_relevance(quick):
    quick.fit(*load_wine(return_X_y=True))
    shares = quick.front_share_[np.argsort(quick.ranking_)]
    assert (np.diff(shares) <= 0).all()


def test_more_generations_are_not_worse():
    X, y = load_iris(return_X_y=True)
    few = PSNSGA(n_generations=0, random_state=3).fit(X, y)
    many = PSNSGA(n_generations=10, random_state=3).fit(X, y)
    assert many.subset_objectives_[0] <= few.subset_objectives_[0]


def test_few_samples_are_drawn_of_many_and_all_of_few(quick):
    X, y = load_iris(return_X_y=True)
    everyone = clone(quick).fit(X, y)
    same = clone(quick).set_params(max_samples=y.size).fit(X, y)
    np.testing.assert_array_equal(same.front_, everyone.front_)
    few = clone(quick).set_params(max_samples=60).fit(X, y)
    drawn = draw_by_class(y, 60, np.random.RandomState(0))
    assert np.bincount(y[drawn]).tolist() == [20, 20, 20]
    again = SubsetFitness(_scaled(X)[drawn], y[drawn], _folds_after_drawing(y))
    np.testing.assert_array_equal(few.front_objectives_, again(few.front_))


def _scaled(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def _folds_after_drawing(y):
    rng = np.random.RandomState(0)
    drawn = draw_by_class(y, 60, rng)
    return stratified_folds(y[drawn], 10, rng)


def test_the_seed_decides():
    X, y = load_wine(return_X_y=True)
    one, same, other = (PSNSGA(n_generations=2, random_state=seed).fit(X, y) for seed in (0, 0, 5))
    np.testing.assert_array_equal(one.front_share_, same.front_share_)
    assert one.front_share_.tolist() != other.front_share_.tolist()


def test_without_pymoo_the_error_says_how_to_install_it(monkeypatch, quick):
    real_import = builtins.__import__

    def no_pymoo(name, *args, **kwargs):
        if name.startswith("pymoo"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pymoo)
    with pytest.raises(ImportError, match=r"pip install 'idfsmec\[wrapper\]'"):
        quick.fit(*load_iris(return_X_y=True))


def test_the_number_of_threads_changes_nothing(wine):
    alone = PSNSGA(n_generations=4, random_state=0).fit(*wine)
    together = PSNSGA(n_generations=4, random_state=0, n_jobs=3).fit(*wine)
    assert together.ranking_.tolist() == alone.ranking_.tolist()
    assert together.subset_objectives_.tolist() == alone.subset_objectives_.tolist()
    assert together.n_evaluations_ == alone.n_evaluations_


@pytest.mark.parametrize(("verbose", "expected"), [(0, []), (1, [10, 12]), (2, range(1, 13))])
def test_verbose_says_where_the_search_stands(wine, capsys, verbose, expected):
    PSNSGA(population_size=4, n_generations=12, random_state=0, verbose=verbose).fit(*wine)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        f"[PSNSGA] generation {generation}/12" for generation in expected
    ]
    assert all("subsets evaluated, least error 0." in line for line in lines)
