"""Tables on the disk are ranked as they would be in memory, and read a few rows at a time."""

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from idfsmec import IDFSMEC, FeatureTable, summarise
from idfsmec.errors import InputError
from idfsmec.federated import streaming
from tests.federated.cohorts import assert_same_ranking, cohort

pytestmark = pytest.mark.filterwarnings("ignore:Missing channels are associated with the label")


def assert_same_counts(found, wanted):
    """Sums know who has a channel, but not in which share of samples: p-values may differ."""
    counts = found.missingness_.drop(columns=["p", "p_holm"])
    expected = wanted.missingness_[counts.columns]
    pd.testing.assert_frame_equal(counts, expected, check_dtype=False)


@pytest.fixture
def stored(tmp_path):
    """A table, and its rows in three files of small row groups, with subjects in several files."""
    table = cohort(40)
    order = np.random.default_rng(0).permutation(len(table))
    folder = tmp_path / "table"
    folder.mkdir()
    for number, piece in enumerate(np.array_split(order, 3)):
        file = table.take(np.sort(piece)).write(folder / f"part{number}.parquet")
        pq.write_table(pq.read_table(file), file, row_group_size=13)
    return table, folder


def in_memory(table, **options):
    return IDFSMEC(**options).fit(table.X, table.y, groups=table.subjects)


@pytest.mark.parametrize("kind", [str, Path, ds.dataset])
def test_a_folder_is_ranked_as_its_table_in_memory(stored, kind):
    table, folder = stored
    found, wanted = IDFSMEC().fit(kind(str(folder))), in_memory(table)
    assert_same_ranking(found, wanted)
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-9)
    assert found.classes_.tolist() == ["HC", "MDD"]
    assert found.n_features_in_ == table.X.shape[1]
    assert_same_counts(found, wanted)


@pytest.mark.parametrize("name", ["table.parquet", "table.csv"])
def test_a_file_is_ranked_as_its_table_in_memory(tmp_path, name):
    table = cohort(40)
    assert_same_ranking(IDFSMEC().fit(table.write(tmp_path / name)), in_memory(table))


def test_channels_that_are_given_hold_on_the_disk_too(stored):
    table, folder = stored
    channels = ["left"] * 6 + ["right"] * 6
    found = IDFSMEC(channels=channels).fit(folder)
    assert found.channel_names_.tolist() == ["left", "right"]
    assert_same_ranking(found, in_memory(table, channels=channels))
    with pytest.raises(InputError, match="2 labels for 12 features"):
        IDFSMEC(channels=["left", "right"]).fit(folder)


def test_a_dataset_may_have_labels_in_the_names_of_folders_and_rows_filtered(stored, tmp_path):
    table, folder = stored
    kept = table.take(table.subjects.to_numpy() > "s005")
    parted = tmp_path / "parted"
    ds.write_dataset(
        ds.dataset(folder).to_table(),
        parted,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("label", pa.string())]), flavor="hive"),
    )
    dataset = ds.dataset(parted, partitioning="hive").filter(ds.field("subject") > "s005")
    assert_same_ranking(IDFSMEC().fit(dataset), in_memory(kept))
    with pytest.raises(InputError, match="there are no samples in it"):
        summarise(dataset.filter(ds.field("subject") == "nobody"), min_subjects=1)


def test_a_fit_on_the_disk_forgets_the_samples_of_before(stored):
    table, folder = stored
    selector = IDFSMEC().partial_fit(table.X, table.y)
    assert_same_ranking(selector.fit(folder), in_memory(table))
    assert "auc" not in selector.effects_
    assert "auc" in selector.fit(table.X, table.y, groups=table.subjects).effects_


def test_what_the_table_has_itself_is_not_given_again(stored):
    table, folder = stored
    for more in ({"y": table.y}, {"groups": table.subjects}, {"sample_weight": np.ones(4)}):
        with pytest.raises(InputError, match="columns of the table"):
            IDFSMEC().fit(folder, **more)


def test_samples_in_memory_need_labels():
    with pytest.raises(ValueError, match="requires y"):
        IDFSMEC().fit(np.zeros((4, 2)))


def test_what_is_no_table_is_refused_by_name(stored, tmp_path):
    table, folder = stored
    with pytest.raises(InputError, match=r"nothing\.parquet"):
        IDFSMEC().fit(tmp_path / "nothing.parquet")
    (tmp_path / "site.summary").touch()
    with pytest.raises(InputError, match="fit_summaries"):
        IDFSMEC().fit(tmp_path / "site.summary")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.parquet file"):
        IDFSMEC().fit(str(tmp_path / "empty"))
    one_class = table.take((table.y == "HC").to_numpy())
    with pytest.raises(InputError, match="at least 2 classes"):
        IDFSMEC().fit(one_class.write(tmp_path / "one.parquet"))
    FeatureTable(table.X.iloc[:, 1:], table.y, table.subjects).write(folder / "part9.parquet")
    with pytest.raises(InputError, match=r"part9\.parquet.*F3__theta"):
        IDFSMEC().fit(folder)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda table: table.drop_columns(["label"]), "exactly one column 'label'"),
        (lambda table: table.slice(0, 0), "there are no samples in it"),
        (
            lambda table: table.set_column(0, "subject", pa.nulls(len(table), pa.string())),
            "The subject is missing in some rows",
        ),
        (
            lambda table: table.set_column(2, "F3__theta", pa.array(["x"] * len(table))),
            "not a readable table",
        ),
    ],
)
def test_a_table_that_cannot_be_summed_up_is_refused_by_name(stored, tmp_path, damage, words):
    table, _ = stored
    whole = pq.read_table(table.write(tmp_path / "whole.parquet"))
    path = tmp_path / "damaged.parquet"
    pq.write_table(damage(whole), path)
    with pytest.raises(InputError, match=rf"damaged\.parquet: .*{words}"):
        IDFSMEC().fit(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"damaged\.parquet: not a readable Parquet file"):
        IDFSMEC().fit(path)


def test_channels_must_fit_the_columns_of_the_table(stored):
    with pytest.raises(InputError, match="channels has 1 labels for"):
        IDFSMEC(channels=["F3"]).fit(stored[1])


def test_a_dataset_without_samples_is_refused(stored):
    dataset = ds.dataset(stored[1]).filter(ds.field("label") == "nobody")
    with pytest.raises(InputError, match="there are no samples in it"):
        IDFSMEC().fit(dataset)


def at_sites(table, twice):
    """The table with subjects at two sites in turn, and some of them at both."""
    numbers = table.subjects.str[1:].astype(int)
    later = table.subjects.duplicated(keep="first")
    sites = np.where((numbers % 4 < 2) ^ (table.subjects.isin(twice) & later), "Oslo", "Lund")
    return FeatureTable(table.X, table.y, table.subjects, sites=sites)


@pytest.mark.filterwarnings("error")
def test_a_name_at_two_sites_is_one_subject_and_named(tmp_path):
    plain = cohort(40, missing=0.0)
    first, second = plain.subjects[plain.subjects.duplicated()].unique()[:2]
    table = at_sites(plain, [first, second])
    file = table.write(tmp_path / "table.parquet")
    said = rf"Participant '{first}' and 1 more are at several sites"
    with pytest.warns(UserWarning, match=said):
        assert FeatureTable.read(file).subjects.nunique() == 40
    for source in (table, file, tmp_path, ds.dataset(file)):
        with pytest.warns(UserWarning, match=said):
            assert summarise(source, min_subjects=1).sites[0].subjects.sum() == 40
    with pytest.warns(UserWarning, match=said):
        found = IDFSMEC().fit(file)
    assert_same_ranking(found, in_memory(table))
    halves = [table.take((table.sites == site).to_numpy()) for site in ("Oslo", "Lund")]
    with pytest.warns(UserWarning, match=said):
        FeatureTable.concat(halves)


@pytest.mark.filterwarnings("error")
def test_subjects_of_one_site_each_are_nothing_to_warn_of(tmp_path):
    table = at_sites(cohort(40, missing=0.0), [])
    file = table.write(tmp_path / "table.parquet")
    assert_same_ranking(IDFSMEC().fit(file), in_memory(FeatureTable.read(file)))


def test_many_pieces_give_the_sums_of_one(stored, monkeypatch):
    table, folder = stored
    monkeypatch.setattr(streaming, "ELEMENTS", 1)  # 256 rows and one channel at a time
    large = FeatureTable.concat([table] * 9)
    large.write(folder / "part3.parquet")
    assert_same_ranking(IDFSMEC().fit(folder), in_memory(FeatureTable.concat([table, large])))
    X = table.X.copy()
    X.iloc[-1, 0] = np.inf
    values = {"subject": table.subjects, "label": table.y, **X.reset_index(drop=True)}
    pq.write_table(pa.table(values), folder / "part4.parquet")
    with pytest.raises(InputError, match=r"part4.parquet: Column .* contains infinity"):
        summarise(folder)


def test_any_number_of_workers_and_of_blocks_gives_the_same_sums(stored, monkeypatch):
    _, folder = stored  # rows of a subject are in several files, between those of others
    whole = streaming.stream_sums(folder)
    with joblib.parallel_config(n_jobs=2):
        assert_equal_sums(streaming.stream_sums(folder), whole, rtol=0)
    monkeypatch.setattr(streaming, "ELEMENTS", 100)  # a channel at a time
    in_blocks = streaming.stream_sums(folder)
    assert_equal_sums(in_blocks, whole, rtol=1e-9)
    with joblib.parallel_config(n_jobs=2):
        assert_equal_sums(streaming.stream_sums(folder), in_blocks, rtol=0)


def assert_equal_sums(study, wanted, rtol):
    for block, of_wanted in zip(study.sums.blocks, wanted.sums.blocks, strict=True):
        for name, values in vars(block).items():
            np.testing.assert_allclose(values, getattr(of_wanted, name), rtol=rtol, err_msg=name)
    np.testing.assert_array_equal(study.sums.total, wanted.sums.total)
    np.testing.assert_array_equal(study.sums.seen, wanted.sums.seen)
    np.testing.assert_array_equal(study.sums.folds, wanted.sums.folds)
    np.testing.assert_allclose(study.effects, wanted.effects, rtol=rtol)


def test_no_process_holds_more_numbers_than_it_may(stored, monkeypatch):
    monkeypatch.setattr(streaming, "ELEMENTS", 4 * 79)
    read, sizes = streaming.Rows.read, []

    def counted(rows, columns):
        for at, X in read(rows, columns):
            sizes.append(X.size)
            yield at, X

    monkeypatch.setattr(streaming.Rows, "read", counted)
    streaming.stream_sums(stored[1])
    assert max(sizes) <= 4 * 79  # a channel has four columns
    assert len(sizes) == 2 * 3 * 3  # two readings of three channels in three files


def test_a_dask_dataframe_is_ranked_as_its_table_in_memory(stored):
    dataframe = pytest.importorskip("dask.dataframe")
    table, _ = stored
    rows = table.X.reset_index(drop=True)
    rows.insert(0, "label", table.y.to_numpy())
    rows.insert(0, "subject", table.subjects.to_numpy())
    frame = dataframe.from_pandas(rows, npartitions=3)
    assert_same_ranking(IDFSMEC().fit(frame), in_memory(table))


def test_pieces_with_whole_subjects_are_ranked_as_one_table():
    table = cohort(60)
    number = table.subjects.str[1:].astype(int).to_numpy()
    pieces = [table.take(number % 5 == part) for part in range(5)]
    selector = IDFSMEC()
    for piece in pieces:
        selector.partial_fit(piece.X, piece.y, groups=piece.subjects)
    assert_same_ranking(selector, in_memory(table))
    assert_same_counts(selector, IDFSMEC().fit(table.X, table.y, groups=table.subjects))
    with pytest.raises(ValueError, match="came in an earlier call"):
        selector.partial_fit(pieces[0].X, pieces[0].y, groups=pieces[0].subjects)


def test_pieces_of_samples_without_subjects_count_each_sample():
    table = cohort(60, epochs=1)
    selector, order = IDFSMEC(), np.random.default_rng(0).permutation(60)
    selector.partial_fit(table.X.iloc[order], table.y.iloc[order])
    assert_same_ranking(selector, IDFSMEC().fit(table.X.iloc[order], table.y.iloc[order]))
    assert not hasattr(IDFSMEC().partial_fit(table.X[:1], table.y[:1]), "ranking_")
