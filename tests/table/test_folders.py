"""Folders of Parquet files are tables; means by participant need not hold all rows."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.table import FeatureTable, files


@pytest.fixture
def table():
    """Two conditions and two recordings of 12 participants; one channel of some is missing."""
    rng = np.random.default_rng(0)
    columns = ["F3__a", "F3__b", "O1__a", "O1__b"]
    X = pd.DataFrame(rng.normal(size=(72, 4)), columns=columns)
    number = np.arange(72) // 6
    X.iloc[(number % 4 == 1) & (np.arange(72) % 2 == 0), 2:] = np.nan
    X.iloc[number == 7, :2] = np.nan
    rows = pd.DataFrame(
        {
            "recording": [f"r{i}-{j % 2}" for i, j in zip(number, range(72), strict=True)],
            "condition": np.where(np.arange(72) % 2, "open", "closed"),
            "epoch": np.arange(72) % 6,
            "age": 20 + number,
        }
    )
    sites = np.where(number < 6, "Oslo", "Lund")
    return FeatureTable(X, number % 2, [f"s{i}" for i in number], sites=sites, rows=rows)


@pytest.fixture
def folder(table, tmp_path):
    """The table in three files, with participants in two of them."""
    folder = tmp_path / "table"
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(72), 3)):
        table.take(part).write(folder / f"{number}.parquet")
    return folder


def equal(found, wanted):
    pd.testing.assert_frame_equal(found.to_frame(), wanted.to_frame(), rtol=1e-12)


def test_a_folder_is_read_as_the_table_whose_files_it_holds(table, folder):
    equal(FeatureTable.read(folder), table)


@pytest.mark.parametrize("values", [50, 10_000])
def test_means_by_participant_are_those_of_all_rows(table, folder, tmp_path, monkeypatch, values):
    monkeypatch.setattr(files, "_VALUES_AT_ONCE", values)
    whole = table.write(tmp_path / "whole.parquet"), table.write(tmp_path / "whole.csv")
    for path in (folder, *whole):
        equal(FeatureTable.read_by_subject(path), table.by_subject())
        opened = table.select_conditions(["open"]).by_subject()
        equal(FeatureTable.read_by_subject(path, ["open"]), opened)
    assert list(table.by_subject().rows) == ["age"]
    assert list(opened.rows) == ["recording", "condition", "age"]
    with pytest.raises(InputError, match="no samples of 'asleep'"):
        FeatureTable.read_by_subject(folder, ["asleep"])


def test_what_does_not_fit_into_memory_is_refused_before_it_is_read(folder, monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    with pytest.raises(InputError, match=r"table: its 3 files: needs .*--per participant"):
        FeatureTable.read(folder)
    assert len(FeatureTable.read_by_subject(folder)) == 12


def test_addresses_are_refused_with_the_way_through_pyarrow():
    for address in ("s3://bucket/table", "gs://bucket/table.parquet", "https://x.org/t.csv"):
        with pytest.raises(InputError, match=r"is an address.*pyarrow\.dataset"):
            FeatureTable.read(address)
