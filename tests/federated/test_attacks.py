"""Attacks that read only what sites release."""

import itertools

import numpy as np
import pytest

from idfsmec import FeatureTable, summarise
from idfsmec.errors import InputError
from idfsmec.federated import Ledger
from tests.federated.cohorts import cohort

SITES = [
    # subjects, epochs, features, whether epochs are identical
    (20, 12, 18, False),
    (44, 1, 18, False),
    (60, 3, 25, False),
    (122, 6, 25, False),
    (122, 6, 25, True),
    (300, 1, 18, False),
    (300, 4, 25, True),
]


def site_table(n, epochs, n_features, identical, seed):
    return cohort(
        n,
        epochs=epochs,
        missing=0.1,
        seed=seed,
        features=[f"f{j}" for j in range(n_features)],
        jitter=0.0 if identical else 0.5,
    )


def means_of(table):
    """Mean of every subject and channel, which an attacker wants."""
    return table.X.groupby(table.subjects.to_numpy()).mean()


def directions(products):
    """Orthonormal basis of what products span."""
    values, vectors = np.linalg.eigh(products)
    return vectors[:, values > 1e-9 * values[-1]]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("n", "epochs", "n_features", "identical"), SITES)
def test_products_span_no_subject_and_cells_are_disjoint(n, epochs, n_features, identical, seed):
    """Spans of cells intersect in subjects only if they are proper subspaces."""
    table = site_table(n, epochs, n_features, identical, seed)
    (site,) = summarise(table).sites
    subjects = means_of(table)
    for channel, own, P in zip(site.channels, site.channel_columns, site.sum_xx, strict=True):
        n_cells = site.count[site.channels.index(channel)]
        assert (n_cells >= 10).all()
        # Any union of cells has full rank, so that the intersection of two is everything.
        cells = P.reshape(-1, n_features, n_features)
        for size in (1, 2):
            for chosen in itertools.combinations(cells, size):
                assert directions(sum(chosen)).shape[1] == n_features
        # No eigenvector of a cell, and no difference of two, is a subject's direction.
        values = subjects[list(np.array(site.columns)[own])].to_numpy() - site.shift[own]
        values = values[~np.isnan(values).any(axis=1)]
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        for A, B in itertools.combinations(cells, 2):
            vectors = np.linalg.eigh(A - B)[1]
            assert np.abs(values @ vectors).max() < 0.999


@pytest.mark.parametrize("seed", range(3))
def test_no_combination_of_cells_is_over_few_subjects(seed):
    """Sums with coefficients -1, 0 and 1 over all released cells of a class."""
    table = site_table(300, 3, 18, False, seed)
    (site,) = summarise(table).sites
    counts = site.count.reshape(len(site.channels), -1)
    for row in counts:
        for signs in itertools.product((-1, 0, 1), repeat=row.size):
            used = row[np.array(signs) != 0]
            assert used.size == 0 or used.sum() >= 10  # cells are disjoint


def test_an_extreme_value_does_not_show():
    table = site_table(300, 4, 18, False, 0)
    for size in (300.0, 1e4, 1e8):
        X = table.X.copy()
        X.loc[(table.subjects == "s011").to_numpy(), "Cz__f3"] = size
        (site,) = summarise(FeatureTable(X, table.y, table.subjects)).sites
        at = site.channels.index("Cz")
        own = site.channel_columns[at]
        j = [site.columns[c] for c in own].index("Cz__f3")
        S = site.sum_x[..., own[j]] * site.scale[own[j]] + site.count[at] * site.shift[own[j]]
        # The nearest that a sum comes to the value, if the others are taken to be 0.
        assert np.abs(S / size - 1).min() > 0.05


def test_squares_do_not_show_the_only_subject_with_several_epochs():
    """Products less squares are the variance within subjects: here of a single one."""
    table = cohort(60, epochs=1, missing=0.0)
    more = table.take((table.subjects == "s003").to_numpy())
    more = FeatureTable(more.X + 0.7, more.y, more.subjects)
    (site,) = summarise(FeatureTable.concat([table, more])).sites
    assert np.isnan(site.sum_mean_squares).all()
    several = cohort(60, epochs=6, missing=0.0)
    (site,) = summarise(several).sites
    assert np.isfinite(site.sum_mean_squares).all()


def test_centring_constants_do_not_contain_who_is_suppressed():
    table = cohort(60, missing=0.0)
    X = table.X.copy()
    X.loc[(table.subjects == "s007").to_numpy(), "Cz__beta"] = 1e6
    with_extreme = summarise(FeatureTable(X, table.y, table.subjects)).sites[0]
    without = X.copy()
    lacks = (table.subjects == "s007").to_numpy()
    without.loc[lacks, [c for c in X if c.startswith("Cz__")]] = np.nan
    plain = summarise(FeatureTable(without, table.y, table.subjects)).sites[0]
    np.testing.assert_allclose(with_extreme.shift, plain.shift, atol=1e-9)


# --- two releases -------------------------------------------------------------------------------


def release(table, folder, key=b"k" * 32):
    ledger = Ledger(folder / "idfsmec-ledger.json")
    summary = summarise(table, study_key=key, ledger=ledger)
    ledger.write()
    return summary


def without(table, *names):
    return table.take(~table.subjects.isin(names).to_numpy())


def test_the_same_table_can_be_released_again(tmp_path):
    table = cohort(120)
    first = release(table, tmp_path)
    assert release(table, tmp_path).sites[0].digest == first.sites[0].digest


def test_a_subject_who_joins_cannot_be_told_from_two_releases(tmp_path):
    table = cohort(120, missing=0.0)
    release(without(table, "s005"), tmp_path)
    with pytest.raises(InputError, match="differ from those of release 1 by 1 participant, whose"):
        release(table, tmp_path)
    assert release(without(table, "s005"), tmp_path)


def test_a_subject_who_is_cleaned_again_cannot_be_told(tmp_path):
    table = cohort(120, missing=0.0)
    release(table, tmp_path)
    X = table.X.copy()
    X.loc[(table.subjects == "s010").to_numpy(), "F3__alpha"] += 0.3
    with pytest.raises(InputError, match="by 1 participant"):
        release(FeatureTable(X, table.y, table.subjects), tmp_path)


def test_a_channel_that_one_more_subject_lacks_cannot_be_told(tmp_path):
    table = cohort(120, missing=0.0)
    release(table, tmp_path)
    X = table.X.copy()
    lacks = (table.subjects == "s010").to_numpy()
    X.loc[lacks, [column for column in X if column.startswith("O2__")]] = np.nan
    with pytest.raises(InputError, match="channel O2 differ"):
        release(FeatureTable(X, table.y, table.subjects), tmp_path)


def test_a_second_key_for_the_same_subjects_is_refused(tmp_path):
    table = cohort(120)
    release(table, tmp_path)
    with pytest.raises(InputError, match="another study key"):
        release(table, tmp_path, key=b"j" * 32)


def test_many_new_subjects_may_be_released(tmp_path):
    old = cohort(120, missing=0.0)
    new = cohort(400, missing=0.0, seed=5, prefix="t")
    release(old, tmp_path)
    assert release(FeatureTable.concat([old, new]), tmp_path).sites[0].channels


def test_the_ledger_holds_no_names_and_is_not_lost_silently(tmp_path):
    table = cohort(120)
    release(table, tmp_path)
    path = tmp_path / "idfsmec-ledger.json"
    text = path.read_text()
    assert "s005" not in text
    path.write_text(text[:-20])
    with pytest.raises(InputError, match="not a readable ledger"):
        Ledger(path)
