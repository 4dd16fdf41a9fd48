"""Summaries of tables that share no rows give the ranking of all their rows."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec import IDFSMEC, FeatureTable, Summary, summarise
from idfsmec._groups import name_folds
from idfsmec.errors import InputError

pytestmark = [
    pytest.mark.filterwarnings("ignore:Missing channels are associated with the label"),
    pytest.mark.filterwarnings("ignore:Channels that carry nothing"),
    pytest.mark.filterwarnings("ignore:Channels are weighed by the loss on the training samples"),
]

CHANNELS = ("F3", "Cz", "O2", "T7")
FEATURES = ("theta", "alpha", "beta")


def cohort(n_people=60, seed=0, per_person=3, missing=0.2, offset=50.0):
    """People of two classes, with gaps; features far from zero, of different sizes."""
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(n_people), per_person)
    y = people % 2
    X = rng.normal(size=(people.size, len(CHANNELS), len(FEATURES)))
    X += rng.normal(size=(n_people, len(CHANNELS), len(FEATURES)))[people] * 0.5
    X[:, :, 1] += 0.8 * X[:, :, 0]
    X[:, :, 0] += np.linspace(1.2, 0.2, len(CHANNELS)) * y[:, None]
    X[rng.random((n_people, len(CHANNELS)))[people] < missing] = np.nan
    columns = [f"{channel}__{feature}" for channel in CHANNELS for feature in FEATURES]
    scale = 10.0 ** rng.integers(-3, 4, size=len(columns))
    frame = pd.DataFrame(X.reshape(people.size, -1) * scale + offset, columns=columns)
    return FeatureTable(frame, np.where(y == 1, "MDD", "HC"), [f"s{i:03}" for i in people])


def by_person(table, site):
    """Tables of the people at each site."""
    where = np.array([site[name] for name in table.subjects])
    return [table.take(where == one) for one in np.unique(where)]


def assert_same_ranking(found, wanted):
    assert found.feature_names_in_.tolist() == wanted.feature_names_in_.tolist()
    assert_allclose(found.scores_, wanted.scores_, rtol=0, atol=1e-9)
    assert_array_equal(found.ranking_, wanted.ranking_)
    assert_allclose(found.channel_weights_, wanted.channel_weights_, rtol=0, atol=1e-9)


@settings(max_examples=15)
@given(st.integers(0, 2**16), st.integers(1, 5), st.sampled_from([0.0, 0.2, 0.5]))
def test_any_split_of_people_into_sites_gives_the_ranking_of_all_rows(seed, n_sites, missing):
    table = cohort(40, seed % 50, missing=missing)
    rng = np.random.default_rng(seed)
    site = {name: rng.integers(n_sites) for name in table.subjects.unique()}
    shared = [summarise(one, min_people=1) for one in by_person(table, site)]
    wanted = IDFSMEC().fit(table.X, table.y, table.subjects)
    assert_same_ranking(IDFSMEC().fit_summaries(shared), wanted)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"channel_loss": "in-sample"},
        {"lam_scale": "paper"},
        {"standardize": False},
        {"missing_correction": None},
        {"missing_indicator": False},
        {"channel_weighting": False},
        {"lam": 0.01, "gamma": 1.2},
    ],
    ids=str,
)
def test_every_setting_means_the_same(options):
    table = cohort(offset=0.0)
    uneven = dict(zip(table.subjects.unique(), [0] * 40 + [1] * 15 + [2] * 5, strict=True))
    shared = [summarise(one, min_people=1) for one in by_person(table, uneven)]
    wanted = IDFSMEC(**options).fit(table.X, table.y, table.subjects)
    found = IDFSMEC(**options).fit_summaries(shared)
    assert_same_ranking(found, wanted)
    assert_allclose(found.objective_, wanted.objective_, rtol=1e-9)
    if wanted.held_out_loss_ is None:
        assert found.held_out_loss_ is None
    else:
        assert_allclose(found.held_out_loss_, wanted.held_out_loss_, rtol=1e-7)
    pd.testing.assert_frame_equal(found.missingness_, wanted.missingness_, check_dtype=False)


def test_sites_may_lack_channels():
    table = cohort()
    site = {name: at % 2 for at, name in enumerate(table.subjects.unique()[::-1])}
    site = {name: at // 30 for at, name in enumerate(table.subjects.unique())}
    left, right = by_person(table, site)
    left, right = left.select_channels(["O2", "Cz"]), right.select_channels(["Cz", "F3", "T7"])
    pooled = FeatureTable.concat([left, right])
    wanted = IDFSMEC().fit(pooled.X, pooled.y, pooled.subjects)
    shared = [summarise(one, min_people=1) for one in (left, right)]
    assert_same_ranking(IDFSMEC().fit_summaries(shared), wanted)


def test_sites_may_have_one_class_if_the_labels_of_the_study_are_known():
    table = cohort()
    healthy, ill = (table.take((table.y == label).to_numpy()) for label in ("HC", "MDD"))
    with pytest.raises(InputError, match=r"summary 2 has the label 'MDD'.*labels of the whole"):
        IDFSMEC().fit_summaries([summarise(healthy), summarise(ill)])
    shared = [summarise(one, min_people=1, labels=["HC", "MDD"]) for one in (healthy, ill)]
    wanted = IDFSMEC().fit(table.X, table.y, table.subjects)
    assert_same_ranking(IDFSMEC().fit_summaries(shared), wanted)
    with pytest.raises(InputError, match="only one class: 'HC'"):
        IDFSMEC().fit_summaries(shared[:1])


def test_a_hospital_can_be_taken_away_again():
    table = cohort(90)
    site = {name: at % 3 for at, name in enumerate(table.subjects.unique())}
    tables = by_person(table, site)
    a, b, c = (summarise(one, min_people=1) for one in tables)
    assert_same_ranking(IDFSMEC().fit_summaries([a + b + c - b]), IDFSMEC().fit_summaries([a, c]))
    with pytest.raises(InputError, match="can be taken away"):
        a - b
    with pytest.raises(InputError, match="more samples"):
        (a + b) - summarise(FeatureTable.concat([tables[1], tables[2]]), min_people=1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_direction_and_size_of_features_follow_from_sums(n_classes):
    table = cohort(60, missing=0.3)
    number = table.subjects.str[1:].astype(int) % n_classes
    table = FeatureTable(table.X, [f"class {one}" for one in number], table.subjects)
    site = {name: at // 25 for at, name in enumerate(table.subjects.unique())}
    shared = [summarise(one, min_people=1) for one in by_person(table, site)]
    found = IDFSMEC().fit_summaries(shared).effects_
    wanted = IDFSMEC().fit(table.X, table.y, table.subjects).effects_
    size = "hedges_g" if n_classes == 2 else "eta_squared"
    assert list(found) == ["feature", "n_people", "direction", size]
    pd.testing.assert_frame_equal(found, wanted[list(found)], rtol=1e-9)


def test_no_difference_of_two_deals_is_over_few_people():
    once = 0
    for seed in range(4):
        table = cohort(90, seed, per_person=2, missing=0.1)
        names = np.array([f"{seed}{one}" for one in table.subjects])
        summary = summarise(FeatureTable(table.X, table.y, names), min_people=18)
        folds = name_folds(names, 4, n_deals=2) % summary.n_folds
        observed = table.observed.to_numpy()
        for (at, sums), (k, label) in product(enumerate(summary.sums), enumerate(summary.labels)):
            if np.allclose(sums.sum_mm[0, :, k], sums.sum_mm[1, :, k], rtol=1e-9):
                once += 1
                continue
            mine = observed[:, at] & (table.y == label).to_numpy()
            for own, others in product(subsets(summary.n_folds), repeat=2):
                left = set(names[mine & np.isin(folds[0], own)])
                right = set(names[mine & np.isin(folds[1], others)])
                assert not 0 < len(left ^ right) < 18
    assert 0 < once < 32


def subsets(n):
    return [[i for i in range(n) if number >> i & 1] for number in range(2**n)]


def test_sums_over_too_few_people_are_withheld_and_named():
    table = cohort(60, missing=0.0)
    rare = table.subjects.isin(table.subjects.unique()[8:]).to_numpy()
    X = table.X.reset_index(drop=True)
    X.loc[rare, [column for column in X if column.startswith("T7__")]] = np.nan
    few = FeatureTable(X, table.y, table.subjects)
    summary = summarise(few)
    assert summary.withheld == ("T7 of class HC", "T7 of class MDD")
    assert "T7 of class HC; T7 of class MDD" in summary.describe()
    last = summary.sums[summary.channels.index("T7")]
    assert last.count.sum() == 0
    assert not last.shift.any()
    assert not last.sum_xx.any()
    # Nor do they hide in what the other sums are taken about.
    changed = FeatureTable(
        X + np.where(X.columns.str.startswith("T7"), 7.0, 0.0), few.y, few.subjects
    )
    for one, other in zip(summary.sums, summarise(changed).sums, strict=True):
        assert_array_equal(one.sum_x, other.sum_x)
        assert_array_equal(one.shift, other.shift)


def test_a_class_of_few_people_is_withheld_without_a_trace():
    table = cohort(60, missing=0.0)
    kept = (table.y == "MDD") | table.subjects.isin(table.subjects.unique()[:12])
    few = table.take(kept.to_numpy())
    alone = table.take((table.y == "MDD").to_numpy())
    summary, without = summarise(few), summarise(alone, labels=["HC", "MDD"])
    assert summary.withheld == ("class HC, of which there are fewer than 10 people",)
    assert summary.people.tolist() == [0, 30]
    for one, other in zip(summary.sums, without.sums, strict=True):
        assert_allclose(one.shift, other.shift, rtol=1e-12)
        assert_allclose(one.sum_xx, other.sum_xx, rtol=1e-9, atol=1e-9)


def test_each_cell_that_is_told_has_enough_people():
    table = cohort(50, missing=0.3)
    summary = summarise(table)
    observed = table.observed.to_numpy()
    for at, sums in enumerate(summary.sums):
        for k, label in enumerate(summary.labels):
            mine = (table.y == label).to_numpy() & observed[:, at]
            n_people = table.subjects[mine].nunique()
            cells = (sums.count[:, k] > 0).sum()
            assert cells * 10 <= n_people


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sfreq": 200.0}, r"sfreq is 200.0 in the one and 250.0 in the other"),
        ({"unit": "V"}, r"unit is 'V' in the one and 'uV' in the other"),
        ({}, r"is 'not known' in the one"),
    ],
)
def test_different_settings_are_refused_with_the_difference(change, said):
    table = cohort()
    info = {"sfreq": 250.0, "unit": "uV", "recordings": [{"subject": "s001"}]}
    one = FeatureTable(table.X, table.y, table.subjects, info)
    other = FeatureTable(table.X, table.y, table.subjects, {**info, **change} if change else {})
    with pytest.raises(InputError, match=said):
        IDFSMEC().fit_summaries([summarise(one), summarise(other)])


def test_different_features_of_a_channel_are_refused():
    table = cohort()
    fewer = table.select_features(["theta", "alpha"])
    with pytest.raises(InputError, match="different features of channel F3: beta"):
        summarise(table) + summarise(fewer)


def test_pieces_in_any_order_give_the_ranking_of_all_rows():
    table = cohort()
    wanted = IDFSMEC().fit(table.X, table.y, table.subjects)
    order = np.random.default_rng(0).permutation(len(table))
    selector = IDFSMEC()
    for piece in np.array_split(order, 7):  # people are torn apart
        part = table.take(piece)
        selector.partial_fit(part.X, part.y, groups=part.subjects)
    assert_same_ranking(selector, wanted)
    pd.testing.assert_frame_equal(selector.missingness_, wanted.missingness_, check_dtype=False)


def test_fit_forgets_the_pieces_of_before():
    table, other = cohort(), cohort(seed=5)
    selector = IDFSMEC().partial_fit(other.X, other.y)
    assert "auc" not in selector.effects_
    selector.fit(table.X, table.y)
    assert "auc" in selector.effects_
    selector.partial_fit(table.X, table.y)
    assert_same_ranking(selector, IDFSMEC().fit(table.X, table.y))


def test_a_piece_with_one_class_waits_for_the_other():
    table = cohort()
    healthy = (table.y == "HC").to_numpy()
    selector = IDFSMEC().partial_fit(table.X[healthy], table.y[healthy])
    assert not hasattr(selector, "ranking_")
    selector.partial_fit(table.X[~healthy], table.y[~healthy])
    assert selector.classes_.tolist() == ["HC", "MDD"]


def test_no_file_is_written_and_the_reason_is_said(tmp_path):
    with pytest.raises(InputError, match="can reveal single participants"):
        summarise(cohort()).write(tmp_path / "a.summary")
    assert not list(tmp_path.iterdir())
    (tmp_path / "b.summary").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="not a readable summary"):
        Summary.read(tmp_path / "b.summary")
