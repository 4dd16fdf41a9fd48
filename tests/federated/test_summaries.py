"""What sites release ranks as their pooled rows would, and impossible files are refused."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from idfsmec import IDFSMEC, FeatureTable, Summary, summarise
from idfsmec.errors import InputError
from idfsmec.federated import release
from idfsmec.federated.summary import study_of
from idfsmec.prediction import SiteHarmonizer
from tests.federated.cohorts import cohort

pytestmark = pytest.mark.filterwarnings("ignore:Missing channels are associated with the label")


def sites(sizes, **options):
    return [cohort(n, seed=i, prefix=f"site{i}_", **options) for i, n in enumerate(sizes)]


def pooled(tables, **options):
    whole = FeatureTable.concat(tables)
    return IDFSMEC(**options).fit(whole.X, whole.y, groups=whole.subjects)


def open_summaries(tables):
    return [summarise(table, min_subjects=1) for table in tables]


def changed(summary, **changes):
    (site,) = summary.sites
    return Summary((dataclasses.replace(site, **changes),))


@pytest.mark.parametrize("seed", range(3))
def test_feature_weights_are_those_of_the_pooled_rows(seed):
    tables = [cohort(n, epochs=8, seed=seed + n, prefix=f"{n}_") for n in (31, 50, 84)]
    found, wanted = IDFSMEC().fit_summaries(open_summaries(tables)), pooled(tables)
    np.testing.assert_allclose(found.feature_weights_, wanted.feature_weights_, atol=1e-9)
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-9)


def test_what_is_released_by_large_sites_is_enough_for_the_weights_of_the_pooled_rows():
    tables = sites((300, 240), missing=0.1)
    released = [summarise(table) for table in tables]
    assert not any(site.suppressed for summary in released for site in summary.sites)
    assert all(summary.sites[0].n_folds == 4 for summary in released)
    found, wanted = IDFSMEC().fit_summaries(released), pooled(tables)
    np.testing.assert_allclose(found.feature_weights_, wanted.feature_weights_, atol=1e-9)
    np.testing.assert_allclose(found.channel_weights_, wanted.channel_weights_, atol=0.03)
    assert found.study_.scheme == "folds"
    g = wanted.effects_["hedges_g"]
    np.testing.assert_allclose(found.effects_["hedges_g"], g, atol=1e-9)
    assert (found.effects_["hedges_g_low"] < g).all()
    assert (found.effects_["hedges_g_high"] > g).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_planted_channel_leads_although_the_small_site_suppresses_it(seed):
    """Three sites of 40, 40 and 20, a fifth of the channels missing."""
    names = ("F3", "F4", "Cz", "Pz", "O1", "O2")
    tables = [
        cohort(n, epochs=4, missing=0.2, seed=100 * seed + n + i, effect=1.8, channels=names,
               prefix=f"{i}_")
        for i, n in enumerate((40, 40, 20))
    ]  # fmt: skip
    found = IDFSMEC().fit_summaries([summarise(table) for table in tables])
    assert found.channel_names_[np.argmax(found.channel_weights_)] == "F3"
    assert found.get_feature_names_out()[np.argmin(found.ranking_[found.support_])]
    assert found.feature_names_in_[np.argmin(found.ranking_)].startswith("F3__")


def test_sites_with_one_fold_are_left_out_in_turn():
    tables = sites((44, 46, 50), missing=0.0)
    study = IDFSMEC().fit_summaries([summarise(table) for table in tables]).study_
    assert study.scheme == "sites"
    assert len(study.sums.splits()) == 3
    assert study.corrected == ()


def test_a_channel_that_one_site_alone_has_is_judged_by_its_corrected_training_loss():
    tables = sites((44, 46), missing=0.0)
    few = FeatureTable(tables[1].X.iloc[:, :8], tables[1].y, tables[1].subjects)
    found = IDFSMEC().fit_summaries([summarise(tables[0]), summarise(few)])
    assert found.study_.corrected == ("O2",)
    assert found.channel_weights_.min() > 0
    lines = found.study_.contributions()
    assert len(lines) == 3
    assert lines[2].startswith("O2: 22 HC, 22 MDD; site 1 (22 HC, 22 MDD); weighted by")


def test_sites_may_lack_a_class():
    tables = sites((120, 90), missing=0.0)
    patients = tables[1].take((tables[1].y == "MDD").to_numpy())
    released = [summarise(tables[0]), summarise(patients, labels=["HC", "MDD"])]
    found = IDFSMEC().fit_summaries(released)
    wanted = pooled([tables[0], patients])
    np.testing.assert_allclose(found.feature_weights_, wanted.feature_weights_, atol=1e-9)
    with pytest.raises(InputError, match=r"at least 2 classes.*'MDD'"):
        IDFSMEC().fit_summaries(released[1:])


def test_summaries_are_added_and_taken_away():
    first, second = (summarise(table) for table in sites((60, 70)))
    both = first + second
    assert len(both.sites) == 2
    assert (both - first).sites == second.sites
    with pytest.raises(InputError, match="was added"):
        first - second
    with pytest.raises(InputError, match="Nothing would be left"):
        first - first
    with pytest.raises(InputError, match="twice"):
        both + first
    with pytest.raises(InputError, match="same release"):
        study_of([first, first])


@pytest.mark.parametrize(
    "setting", [{"lam_scale": "paper"}, {"missing_correction": None}, {"missing_indicator": False}]
)
def test_settings_that_need_more_than_sums_are_refused_by_name(setting):
    (name,) = setting
    with pytest.raises(InputError, match=f"{name}.*needs the samples"):
        IDFSMEC(**setting).fit_summaries([summarise(cohort())])


def test_harmonized_sums_rank_as_harmonized_rows():
    tables = sites((80, 90), missing=0.1, epochs=1)
    moved = FeatureTable(3 * tables[1].X + 5, tables[1].y, tables[1].subjects)
    whole = FeatureTable.concat([tables[0], moved])
    where = np.repeat(["a", "b"], [len(tables[0]), len(moved)])
    X = SiteHarmonizer().fit(whole.X, sites=where).transform(whole.X, sites=where)
    wanted = IDFSMEC().fit(
        pd.DataFrame(X, columns=whole.X.columns), whole.y, groups=whole.subjects
    )
    found = IDFSMEC().fit_summaries(open_summaries([tables[0], moved]), harmonize=True)
    np.testing.assert_allclose(found.feature_weights_, wanted.feature_weights_, atol=1e-7)
    with pytest.raises(InputError, match="two summaries at least"):
        IDFSMEC().fit_summaries([summarise(tables[0])], harmonize=True)


def test_what_does_not_belong_together_is_refused():
    first, second = sites((60, 70), missing=0.0)
    a, b = summarise(first), summarise(second)
    other = FeatureTable(second.X, np.where(second.y == "HC", "well", "MDD"), second.subjects)
    with pytest.raises(InputError, match="has the label 'well'"):
        study_of([a, summarise(other)], names=["A", "B"])
    fewer = FeatureTable(second.X.drop(columns="Cz__beta"), second.y, second.subjects)
    with pytest.raises(InputError, match="different features of channel Cz: beta"):
        study_of([a, summarise(fewer)])
    with pytest.raises(InputError, match="different settings: epoch is 4 in the one"):
        study_of([changed(a, settings={"epoch": 2}), changed(b, settings={"epoch": 4})])
    with pytest.raises(InputError, match="no summaries"):
        study_of([])


# --- what is released ---------------------------------------------------------------------------


def test_cells_have_enough_subjects_and_full_rank():
    for n, seed in ((40, 0), (90, 1), (200, 2)):
        (site,) = summarise(cohort(n, seed=seed, missing=0.3)).sites
        assert (site.count[site.count > 0] >= 10).all() or not site.channels
        for channel in site.sum_xx:
            assert (np.linalg.eigvalsh(channel.reshape(-1, 4, 4))[:, 0] > 0).all()
        assert set(site.channels) | set(site.suppressed) == {"F3", "Cz", "O2"}


def test_too_few_subjects_for_the_features_suppress_a_channel():
    features = [f"f{j}" for j in range(14)]
    (site,) = summarise(cohort(24, epochs=1, missing=0, features=features)).sites
    assert not site.channels
    assert "full rank" in site.suppressed["F3"]


def test_the_smallest_site_that_releases_anything_has_ten_subjects_of_each_class():
    (site,) = summarise(cohort(20, epochs=12, missing=0, seed=3)).sites
    assert site.channels == ["F3", "Cz", "O2"]
    (site,) = summarise(cohort(19, epochs=12, missing=0, seed=3)).sites
    assert site.channels == []


def test_who_holds_most_of_a_sum_is_left_out_of_the_channel_and_counted():
    table = cohort(60, missing=0.0)
    X = table.X.copy()
    X.loc[(table.subjects == "s007").to_numpy(), "Cz__beta"] = 1e4
    (site,) = summarise(FeatureTable(X, table.y, table.subjects)).sites
    assert site.left_out == {"Cz": 1}
    assert site.count.sum(axis=(1, 2)).tolist() == [60, 59, 60]
    assert np.abs(site.shift).max() < 100


def test_columns_that_follow_from_other_channels_are_refused():
    table = cohort(60)
    X = table.X.copy()
    X["O2__beta"] = 2 * table.X["F3__theta"] + 1
    with pytest.raises(InputError, match="'F3__theta' and 'O2__beta' are the same"):
        summarise(FeatureTable(X, table.y, table.subjects))
    X = table.X.copy()
    alpha = [column for column in X if column.endswith("__alpha")]
    X[alpha] = X[alpha].sub(X[alpha].mean(axis=1), axis=0)
    with pytest.raises(InputError, match=r"Feature 'alpha' of a channel follows.*\(F3, Cz, O2\)"):
        summarise(FeatureTable(X, table.y, table.subjects))
    four = cohort(60, channels=("F3", "F4", "O1", "O2"))
    X = four.X.copy()
    X["O2__beta"] = X["F3__beta"] - X["F4__beta"]
    with pytest.raises(InputError, match=r"Feature 'beta' of a channel follows.*\(F3, F4, O2\)"):
        summarise(FeatureTable(X, four.y, four.subjects))


@pytest.mark.parametrize("name", ["F4-F3", "F4F3", "FAA", "frontal", "ROI1", "mean_alpha"])
def test_only_electrodes_take_part_where_participants_lack_channels(name):
    channels = ("F3", "F4", name)
    with pytest.raises(InputError, match=rf"No electrode has the name {name}\. Some part.*Leave"):
        summarise(cohort(60, channels=channels))
    (site,) = summarise(cohort(60, channels=channels), electrodes=[name]).sites
    assert site.channels == list(channels)
    (site,) = summarise(cohort(60, channels=channels, missing=0.0)).sites
    assert site.channels == list(channels)
    assert site.dependence == "all channels have the same participants"


@pytest.mark.parametrize("channels", [("E17", "E21", "E3"), ("EEG Fp1-LE", "FP2.", "T3")])
def test_electrodes_are_known_by_the_names_that_amplifiers_give_them(channels):
    assert summarise(cohort(60, channels=channels)).sites[0].channels == list(channels)


def test_one_electrode_under_two_names_is_refused():
    with pytest.raises(InputError, match="Channels T3 and T7 are one electrode"):
        summarise(cohort(60, channels=("T3", "Cz", "T7")))


def test_what_could_not_be_tested_is_stated(tmp_path):
    channels = ("F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2", "Fz", "Cz")
    table = cohort(60, channels=channels, missing=0.15)
    summary = summarise(table)
    n = int(table.observed.groupby(table.subjects).first().all(axis=1).sum())
    text = f"{n} participants have all channels, and the test needs more than 20"
    assert text in summary.describe()
    assert text in Summary.read(summary.write(tmp_path / "a.summary")).describe()
    tested = summarise(cohort(90, missing=0.15)).describe()
    assert "Columns that follow from other channels: columns do not follow" in tested


# --- conditions ---------------------------------------------------------------------------------


def two_conditions(n=60, without=(), **options):
    """Eyes open and closed of the same participants, some of whom lack the second."""
    parts = [cohort(n, seed=seed, missing=0.0, **options) for seed in (3, 4)]
    rows = [pd.DataFrame({"condition": [name] * len(part)}) for name, part in zip("ab", parts)]  # noqa: B905
    tables = [FeatureTable(p.X, p.y, p.subjects, rows=r) for p, r in zip(parts, rows, strict=True)]
    whole = FeatureTable.concat(tables)
    lacks = whole.subjects.isin(without) & (whole.rows["condition"] == "b")
    return whole.take(~lacks.to_numpy())


@pytest.mark.parametrize("stored", [False, True])
def test_one_release_holds_several_conditions(tmp_path, stored):
    table = two_conditions(without=["s005"])
    source = table.write(tmp_path / "t.parquet") if stored else table
    both = summarise(source, conditions=["a", "b"])
    (site,) = both.sites
    assert site.channels == [f"{name} ({part})" for part in "ab" for name in ("F3", "Cz", "O2")]
    assert site.count.sum(axis=(1, 2)).tolist() == [60] * 3 + [59] * 3
    for name in "ab":
        (alone,) = summarise(table.select_conditions([name])).sites
        (taken,) = both.take(conditions=[name]).sites
        assert taken.columns == alone.columns
        np.testing.assert_allclose(taken.sum_x, alone.sum_x, atol=1e-9)
        for found, wanted in zip(taken.sum_xx, alone.sum_xx, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-9)
        np.testing.assert_allclose(taken.count, alone.count)
    with pytest.raises(InputError, match="has no samples of condition 'c'"):
        summarise(source, conditions=["a", "c"])


def test_a_part_of_what_was_released_ranks_as_a_table_with_this_part():
    table = two_conditions(80)
    both = summarise(table, conditions=["a", "b"])
    features = ("alpha", "gamma")
    some = [column for column in table.X if column.endswith(features)]
    part = table.select_conditions(["b"])
    wanted = IDFSMEC().fit(part.X[some], part.y, groups=part.subjects)
    found = IDFSMEC().fit_summaries([both.take(conditions=["b"], features=features)])
    assert found.feature_names_in_.tolist() == some
    np.testing.assert_allclose(found.feature_weights_, wanted.feature_weights_, atol=1e-9)
    assert len(both.take(features=["alpha"]).sites[0].channels) == 6
    with pytest.raises(InputError, match="nothing released of delta"):
        both.take(features=["delta"])


def test_folds_need_the_key_of_the_study():
    table = cohort(200, missing=0.0)
    plain, keyed = summarise(table), summarise(table, study_key=b"k" * 32)
    assert plain.sites[0].digest != keyed.sites[0].digest
    assert keyed.sites[0].digest == summarise(table, study_key=b"k" * 32).sites[0].digest


def test_a_study_key_is_made_once_and_read_again(tmp_path):
    path = tmp_path / "new" / "study.key"
    key = release.new_study_key()
    release.write_study_key(path, key)
    assert release.read_study_key(path) == key
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(InputError, match="another process has made this key"):
        release.write_study_key(path, release.new_study_key())
    for size, right in ((15, False), (16, True), (64, True), (65, False)):
        path.write_bytes(b"k" * size)
        if right:
            assert len(release.read_study_key(path)) == size
        else:
            with pytest.raises(InputError, match=rf"study\.key: not a study key: it has {size}"):
                release.read_study_key(path)


def test_acquisition_facts_are_counted_where_enough_subjects_share_them(tmp_path):
    table = cohort(80, epochs=1, missing=0.0)
    recordings = [
        {
            "subject": name,
            "facts": {"n_channels": 19 if i < 40 else 20 if i < 76 else 31 + i, "format": "edf"},
        }
        for i, name in enumerate(table.subjects)
    ]
    described = FeatureTable(table.X, table.y, table.subjects, {"recordings": recordings})
    rows = summarise(described).sites[0].acquisition
    assert {(row["fact"], row["value"], row["count"]) for row in rows} == {("format", "edf", 40)}
    recordings = recordings[:76]
    described = FeatureTable(table.X, table.y, table.subjects, {"recordings": recordings})
    rows = summarise(described).sites[0].acquisition
    assert {row["value"] for row in rows} == {"19", "20", "edf"}
    stored = described.write(tmp_path / "table.parquet")
    assert summarise(stored).sites[0].acquisition == rows
    about = pd.DataFrame({"device": np.where(np.arange(80) < 50, "BrainAmp", "HydroCel")})
    named = FeatureTable(table.X, table.y, table.subjects, rows=about)
    for source in (named, named.write(tmp_path / "named.parquet")):
        rows = summarise(source).sites[0].acquisition
        assert {(row["value"], row["count"]) for row in rows} == {
            ("BrainAmp", 25),
            ("HydroCel", 15),
        }


def test_bad_arguments_are_refused():
    for bad in ({"min_subjects": 0},):
        with pytest.raises(InputError, match=next(iter(bad))):
            summarise(cohort(), **bad)


# --- files --------------------------------------------------------------------------------------


def test_a_file_holds_all_of_it_and_says_so(tmp_path):
    summary = summarise(cohort(90, missing=0.3), site="Oslo")
    path = summary.write(tmp_path / "oslo.summary")
    again = Summary.read(path)
    assert again.sites[0].digest == summary.sites[0].digest
    text = again.describe()
    assert "Summary of Oslo" in text
    assert "No cell has fewer than 10 participants" in text
    for name in ("F3", "Cz", "O2"):
        assert name in text
    with pytest.raises(InputError, match="at least 5"):
        summarise(cohort(90), min_subjects=4).write(path)
    with pytest.raises(InputError, match="one site"):
        (summary + summarise(cohort(90, seed=4))).write(path)


def test_files_that_are_damaged_old_or_new_are_refused(tmp_path):
    path = summarise(cohort()).write(tmp_path / "a.summary")
    with np.load(path) as stored:
        parts = dict(stored)
    with pytest.raises(InputError, match="no such file"):
        Summary.read(tmp_path / "b.summary")
    cut = tmp_path / "cut.summary"
    cut.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"cut\.summary: not a readable summary"):
        Summary.read(cut)
    other = tmp_path / "other.summary"
    with other.open("wb") as file:
        np.savez(file, **parts | {"sum_x": parts["sum_x"] + 1})
    with pytest.raises(InputError, match="checksum"):
        Summary.read(other)
    for version, words in ((4, "can reveal single participants"), (6, "upgrade idfsmec")):
        about = json.loads(parts["about"].tobytes()) | {"format_version": version}
        text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        with other.open("wb") as file:
            np.savez(file, **parts | {"about": text})
        with pytest.raises(InputError, match=words):
            Summary.read(other)


def impossible(site):
    """What no subjects can have, by name."""

    def put(array, value, index=(0, 0)):
        array = array.copy()
        array[(..., *index) if array.ndim > 2 else index] = value
        return array

    P = site.sum_xx
    n = site.count.astype(float)
    yield "labels", {"labels": ("HC", "HC")}
    yield "columns", {"columns": (site.columns[0],) * len(site.columns)}
    yield "negative count", {"count": put(site.count, -12)}
    yield "huge count", {"count": put(site.count, 10**6)}
    yield "few", {"count": put(site.count, 3)}
    yield "floats", {"count": n}
    yield "negative subjects", {"subjects": put(site.subjects, -1)}
    yield "shape", {"subjects": site.subjects[:, :1]}
    yield "folds", {"subjects": np.repeat(site.subjects, 3, axis=0)}
    for value in (np.nan, np.inf, -np.inf):
        yield f"sums {value}", {"sum_x": put(site.sum_x, value)}
        yield f"shift {value}", {"shift": np.full(site.shift.shape, value)}
        yield f"products {value}", {"sum_xx": (put(P[0], value), *P[1:])}
    yield "squares", {"sum_mean_squares": put(site.sum_mean_squares, np.inf)}
    yield "many squares", {"sum_mean_squares": put(site.sum_mean_squares, 1e9)}
    yield "negative squares", {"sum_mean_squares": put(site.sum_mean_squares, -1.0)}
    for value in (0.0, -1.0):
        yield f"scale {value}", {"scale": np.full(site.scale.shape, value)}
    yield "not symmetric", {"sum_xx": (put(P[0], 1e3, (0, 1)), *P[1:])}
    yield "negative", {"sum_xx": (-P[0], *P[1:])}
    yield "indefinite", {"sum_xx": (0 * P[0] + 1e-3, *P[1:])}
    yield "sums too large", {"sum_x": site.sum_x + 1e6}
    yield "nobody", {"count": np.zeros_like(site.count)}


def test_sums_that_no_subjects_can_have_are_refused(tmp_path):
    good = summarise(cohort(90, missing=0.0))
    (site,) = good.sites
    cases = list(impossible(site))
    assert len(cases) >= 25
    for _, changes in cases:
        bad = changed(good, **changes)
        with pytest.raises(InputError, match="impossible summary"):
            IDFSMEC().fit_summaries([bad])
        path = tmp_path / "bad.summary"
        try:
            bad.write(path)
        except (ValueError, IndexError):
            continue
        with pytest.raises(InputError, match=r"bad\.summary"):
            Summary.read(path)
