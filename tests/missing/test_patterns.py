"""Simulated missing channels: the rate is met, and each pattern lies as it says."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.missing import simulate_missing, simulate_missing_mask
from idfsmec.table import FeatureTable
from idfsmec.table.positions import angles_between, channel_positions

PATTERNS = ["random", "recording", "burst", "region", "uneven"]
TEN_TWENTY = [
    *("Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz"),
    *("C4", "T8", "P7", "P3", "Pz", "P4", "P8", "O1", "O2"),
]


def directions(n_channels: int) -> np.ndarray:
    vectors = np.random.default_rng(5).normal(size=(n_channels, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def table_of(n_subjects=8, n_epochs=12, channels=TEN_TWENTY, info=None) -> FeatureTable:
    n_samples = n_subjects * n_epochs
    rng = np.random.default_rng(0)
    columns = [f"{c}__{f}" for c in channels for f in ("mean", "ap_alpha")]
    return FeatureTable(
        pd.DataFrame(rng.normal(size=(n_samples, len(columns))), columns=columns),
        pd.Series(["HC", "MDD"] * (n_samples // 2)),
        pd.Series(np.repeat([f"s{i}" for i in range(n_subjects)], n_epochs)),
        info or {},
    )


@st.composite
def cases(draw):
    n_samples = draw(st.integers(1, 60))
    n_channels = draw(st.integers(1, 24))
    n_recordings = draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    observed = rng.uniform(size=(n_samples, n_channels)) >= draw(st.sampled_from([0, 0.2, 0.9]))
    rate = draw(st.one_of(st.just(0.0), st.floats(0, 0.999)))
    return observed, rate, rng.integers(n_recordings, size=n_samples), seed


@pytest.mark.parametrize("pattern", PATTERNS)
@given(case=cases())
def test_the_rate_is_met_and_missing_stay_gaps(pattern, case):
    observed, rate, recordings, seed = case
    after = simulate_missing_mask(
        observed,
        rate,
        pattern,
        seed,
        recordings=recordings,
        positions=directions(observed.shape[1]),
    )
    assert not (after & ~observed).any()
    n_observed = observed.sum()
    if n_observed:
        achieved = (observed & ~after).sum() / n_observed
        # A small table cannot do better than half a cell.
        assert abs(achieved - rate) <= max(0.01, 0.5 / n_observed) + 1e-12


@pytest.mark.parametrize("pattern", ["random", "uneven", "region"])
@given(case=cases())
def test_no_more_samples_are_emptied_than_the_rate_demands(pattern, case):
    observed, rate, _, seed = case
    after = simulate_missing_mask(
        observed, rate, pattern, seed, positions=directions(observed.shape[1])
    )
    had_some = observed.any(axis=1)
    emptied = (had_some & ~after.any(axis=1)).sum()
    assert emptied == max(0, had_some.sum() - after.sum())


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.95])
def test_a_table_loses_whole_channels_at_the_asked_rate(pattern, rate):
    table = table_of()
    incomplete = simulate_missing(table, rate, pattern, random_state=3)
    missing = ~incomplete.observed.to_numpy()
    assert missing.mean() == pytest.approx(rate, abs=0.01)
    # All features of a channel go together, and what stays is untouched.
    by_channel = incomplete.X.isna().to_numpy().reshape(len(table), len(TEN_TWENTY), 2)
    assert (by_channel.all(axis=2) == missing).all()
    assert (by_channel.any(axis=2) == missing).all()
    assert incomplete.X.where(incomplete.X.notna(), table.X).equals(table.X)
    assert table.X.notna().all(axis=None)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_seed_makes_the_same_missing_and_another_seed_others(pattern):
    table = table_of()
    one, again, other = (simulate_missing(table, 0.3, pattern, random_state=s) for s in (1, 1, 2))
    assert one.equals(again)
    assert not one.observed.equals(other.observed)


def test_a_generator_and_a_randomstate_are_taken_too():
    table = table_of()
    for make in (np.random.default_rng, np.random.RandomState):
        assert simulate_missing(table, 0.2, random_state=make(4)).equals(
            simulate_missing(table, 0.2, random_state=make(4))
        )


def test_rate_zero_changes_nothing():
    table = table_of()
    for pattern in PATTERNS:
        assert simulate_missing(table, 0.0, pattern, random_state=0).equals(table)


def test_random_missing_spare_no_channel_and_no_sample():
    observed = np.ones((4000, 10), dtype=bool)
    after = simulate_missing_mask(observed, 0.4, "random", 0)
    gone = ~after
    # Binomial spread: 0.4 +- 5 standard errors, for channels and for neighbours in time alike.
    assert np.abs(gone.mean(axis=0) - 0.4).max() < 5 * np.sqrt(0.24 / 4000)
    together = (gone[1:] & gone[:-1]).mean()
    assert together == pytest.approx(0.16, abs=0.01)


def test_recording_missing_take_a_channel_from_all_rows_of_a_subject():
    table = table_of(n_subjects=10)
    gone = ~simulate_missing(table, 0.2, "recording", random_state=0).observed
    share = gone.groupby(table.subjects.to_numpy()).mean().to_numpy()
    assert set(np.unique(share)) == {0.0, 1.0}


def test_recording_missing_take_one_in_part_where_whole_ones_cannot_meet_the_rate():
    observed = np.ones((40, 2), dtype=bool)
    recordings = np.repeat([0, 1], 20)
    gone = ~simulate_missing_mask(observed, 0.1, "recording", 0, recordings=recordings)
    assert gone.sum() == 8
    (rows, channels) = np.nonzero(gone)
    assert len(set(channels)) == 1
    assert rows.tolist() in (list(range(12, 20)), list(range(32, 40)))


@pytest.mark.parametrize("rate", [0.1, 0.4, 0.6, 0.9])
def test_burst_missing_last_to_the_end_of_the_recording(rate):
    table = table_of()
    gone = ~simulate_missing(table, rate, "burst", random_state=0).observed
    for _, rows in gone.groupby(table.subjects.to_numpy()):
        assert (np.diff(rows.to_numpy().astype(int), axis=0) >= 0).all()


def test_burst_missing_begin_anywhere_in_a_recording():
    recordings = np.repeat(np.arange(50), 20)
    gone = ~simulate_missing_mask(
        np.ones((1000, 8), dtype=bool), 0.25, "burst", 0, recordings=recordings
    )
    lengths = gone.reshape(50, 20, 8).sum(axis=1)
    onsets = 20 - lengths[lengths > 0]
    assert set(onsets) == set(range(1, 20))


@pytest.mark.parametrize("channels", [TEN_TWENTY, [f"E{i}" for i in range(1, 129)]])
def test_region_missing_are_neighbours(channels):
    montage = "GSN-HydroCel-128" if channels[0] == "E1" else None
    table = table_of(channels=channels, info={"montage": montage} if montage else None)
    gone = ~simulate_missing(table, 0.1, "region", random_state=0).observed.to_numpy()
    angles = angles_between(channel_positions(channels, montage))
    sizes = gone.sum(axis=1)
    for row in gone[sizes > 1]:
        inside = np.flatnonzero(row)
        # A disc: from some member of it, no electrode outside is nearer than one inside.
        discs = [
            angles[centre, inside].max() <= angles[centre, ~row].min() + 1e-9 for centre in inside
        ]
        assert any(discs)
    assert np.median(sizes[sizes > 0]) == round(np.sqrt(len(channels)))


def test_region_missing_need_places_and_the_error_says_how_to_give_them():
    table = table_of(channels=["A", "B", "C"])
    with pytest.raises(InputError, match=r"A, B, C are neither in the 10-05 system.*montages"):
        simulate_missing(table, 0.2, "region", random_state=0)


def test_region_missing_fall_back_on_10_05_names_where_the_montage_is_of_no_use():
    plain = simulate_missing(table_of(), 0.2, "region", random_state=0).observed
    for montage in ("our own cap", ["biosemi64", "biosemi32"], "GSN-HydroCel-128", None):
        table = table_of(info={"montage": montage})
        assert simulate_missing(table, 0.2, "region", random_state=0).observed.equals(plain)


def test_region_missing_put_up_with_a_channel_without_a_place():
    table = table_of(channels=["Fp1", "Fp2", "CB1", "O1", "O2"])
    incomplete = simulate_missing(table, 0.3, "region", random_state=0)
    assert (~incomplete.observed).to_numpy().mean() == pytest.approx(0.3, abs=0.01)


def test_uneven_rates_differ_between_channels_far_more_than_by_chance():
    observed = np.ones((500, 19), dtype=bool)
    uneven = (~simulate_missing_mask(observed, 0.3, "uneven", 0)).mean(axis=0)
    even = (~simulate_missing_mask(observed, 0.3, "random", 0)).mean(axis=0)
    assert uneven.std() > 5 * even.std()
    assert uneven.min() < 0.1
    assert uneven.max() > 0.6


def test_missing_are_written_down_in_info():
    twice = simulate_missing(simulate_missing(table_of(), 0.1, "burst", 7), 0.2, random_state=8)
    assert list(twice.info["gaps"]) == [
        {"rate": 0.1, "pattern": "burst", "random_state": 7},
        {"rate": 0.2, "pattern": "random", "random_state": 8},
    ]
    # 0.2 of what was left: 1 - 0.9 * 0.8.
    assert (~twice.observed).to_numpy().mean() == pytest.approx(0.28, abs=0.01)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(InputError, match="missing rate"):
        simulate_missing(table_of(), rate, random_state=0)


def test_an_unknown_pattern_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="random, recording, burst, region, uneven"):
        simulate_missing(table_of(), 0.1, "stripes", random_state=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pattern": "region"}, "needs the positions"),
        ({"pattern": "region", "positions": np.zeros((3, 3))}, r"\(2, 3\)"),
        ({"pattern": "region", "positions": np.full((2, 3), np.nan)}, "at least one"),
        ({"pattern": "recording", "recordings": np.zeros(3)}, "3 recordings for 4 samples"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        simulate_missing_mask(np.ones((4, 2), dtype=bool), 0.5, **given, random_state=0)
    with pytest.raises(InputError, match="axes"):
        simulate_missing_mask(np.ones(4, dtype=bool), 0.5, random_state=0)
