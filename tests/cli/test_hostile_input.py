"""Hostile tables and recordings: one line that names the file, and exit 2."""

import os

import edfio
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.table import FeatureTable
from tests.corpus.sound import make_raw, write_raw


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], terminal_width=200)
    return done.exit_code, " ".join((done.stdout + done.stderr).split())


def refused(*words):
    """Run a command that must refuse what it gets, and return its line."""
    code, text = run(*words)
    assert code == 2, text
    assert "Traceback" not in text
    return text


@pytest.fixture
def frame():
    values = np.random.default_rng(0).normal(size=(40, 4))
    columns = ["Fp1__a", "Fp1__b", "Cz__a", "Cz__b"]
    frame = pd.DataFrame(values, columns=columns)
    frame.insert(0, "label", ["MDD", "HC"] * 20)
    frame.insert(0, "subject", [f"s{number:02}" for number in range(40)])
    return frame


@pytest.fixture
def little_memory(monkeypatch):
    """Let the machine seem to have two pages of 4 KiB."""
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2}.__getitem__)


# --- tables -------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("command", ["select", "summarise"])
def test_a_pipe_inside_a_folder_of_tables_is_named(tmp_path, frame, command):
    (tmp_path / "tables").mkdir()
    frame.to_parquet(tmp_path / "tables" / "a.parquet")
    os.mkfifo(tmp_path / "tables" / "b.parquet")
    output = tmp_path / ("ranking.csv" if command == "select" else "site.summary")
    text = refused(command, tmp_path / "tables", "-o", output)
    assert "b.parquet: is a pipe or a device" in text


@pytest.mark.parametrize("column", ["Cz__a", "age", "label"])
@pytest.mark.parametrize("folder", [True, False])
def test_parquet_columns_of_lists_are_named(tmp_path, frame, column, folder):
    lists = pd.Series([[1.0, 2.0]] * 40)
    frame = frame.assign(**{column: lists}) if column in frame else frame
    if column == "age":
        frame.insert(2, column, lists)
    frame.to_parquet(tmp_path / "lists.parquet")
    text = refused("select", tmp_path if folder else tmp_path / "lists.parquet")
    assert f"lists.parquet: Column '{column}' holds lists or structures" in text


def test_names_that_are_not_utf8_are_refused(tmp_path, frame):
    path = tmp_path / os.fsdecode(b"s\xe9.csv")
    frame.to_csv(path, index=False)
    assert "the name is not in UTF-8: rename it" in refused("select", path)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "not in UTF-8" in refused("select", tmp_path / "t.csv", "-o", path)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_utf16_tables_are_read(tmp_path, frame, ending, separator):
    frame.to_csv(tmp_path / f"t{ending}", index=False, encoding="utf-16", sep=separator)
    frame.to_csv(tmp_path / "plain.csv", index=False)
    table = FeatureTable.read(tmp_path / f"t{ending}")
    assert table.equals(FeatureTable.read(tmp_path / "plain.csv"))


@pytest.mark.slow
def test_a_csv_table_of_a_hundred_thousand_columns_is_read(tmp_path):
    names = [f"C{number // 10}__f{number % 10}" for number in range(100_000)]
    line = ",".join(["-0.123456789012345"] * len(names))
    text = "\n".join([f"subject,label,{','.join(names)}", f"a,HC,{line}", f"b,MDD,{line}"])
    (tmp_path / "wide.csv").write_text(text + "\n")
    assert len(FeatureTable.read(tmp_path / "wide.csv").channels) == 10_000


def test_channels_that_differ_only_in_case_are_named_without_more(tmp_path, frame):
    frame.rename(columns={"Cz__a": "fp1__a"}).to_csv(tmp_path / "t.csv", index=False)
    text = refused("select", tmp_path / "t.csv")
    assert "The channels 'Fp1' and 'fp1' differ only in case" in text


@pytest.mark.parametrize("command", ["select", "audit", "benchmark", "train"])
@pytest.mark.parametrize("sign", ["\u200b", "\u00ad", "\ufe0f", "\u3164", "\u2060"])
def test_classes_that_differ_by_an_invisible_sign_are_named(tmp_path, frame, command, sign):
    frame.loc[3, "label"] = f"HC{sign}"
    frame.to_parquet(tmp_path / "t.parquet")
    text = refused(command, tmp_path / "t.parquet", *OUTPUTS[command](tmp_path))
    assert "differ only in case, width, blanks, invisible signs" in text
    assert "'HC" in text


OUTPUTS = {
    "select": lambda folder: ["-o", folder / "r.csv"],
    "audit": lambda folder: ["--out", folder / "a"],
    "benchmark": lambda folder: ["--out", folder / "b"],
    "train": lambda folder: ["-o", folder / "m.skops"],
}


@pytest.mark.parametrize("column", ["subject", "Cz"])
def test_subjects_and_channels_that_differ_by_compatible_signs_are_named(frame, column):
    if column == "subject":
        frame.loc[3, "subject"] = "s\uff10\uff11"  # full-width digits: s01
    else:
        frame["\u200bCz__a"] = 1.0
    with pytest.raises(InputError, match="differ only in case, width"):
        FeatureTable(frame.iloc[:, 2:], frame["label"], frame["subject"])


@pytest.mark.parametrize("recordings", [5, "a.edf", [5], {"a": 1}])
def test_recordings_that_are_no_list_of_facts_are_refused(frame, recordings):
    with pytest.raises(InputError, match=r"info\['recordings'\] must be a list"):
        FeatureTable(
            frame.iloc[:, 2:], frame["label"], frame["subject"], {"recordings": recordings}
        )


def test_a_column_of_the_table_itself_in_rows_names_its_argument(frame):
    rows = pd.DataFrame({"site": ["Oslo"] * len(frame)})
    with pytest.raises(InputError, match="give column 'site' as sites= of the table"):
        FeatureTable(frame.iloc[:, 2:], frame["label"], frame["subject"], rows=rows)


@pytest.mark.parametrize("values", ["constant", "varying"])
def test_columns_of_the_smallest_numbers_count_as_constant(tmp_path, frame, values):
    tiny = 5e-324
    frame["Cz__a"] = tiny if values == "constant" else tiny * (np.arange(len(frame)) % 3)
    frame.to_parquet(tmp_path / "t.parquet")
    few = ["--folds", 2, "--repeats", 1]
    code, text = run("train", tmp_path / "t.parquet", *OUTPUTS["train"](tmp_path), *few)
    assert (code, "Warning" in text) == (0, False), text


@pytest.mark.parametrize("command", ["audit", "benchmark"])
def test_a_link_to_nothing_and_a_path_too_long_for_results_are_named(tmp_path, frame, command):
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "x")
    text = refused(command, tmp_path / "t.parquet", "--out", tmp_path / "link")
    assert "is a link to" in text
    assert "does not exist" in text
    deep = tmp_path.joinpath(*["x" * 100] * 8)
    text = refused(command, tmp_path / "t.parquet", "--out", deep)
    assert "the path is too long for SQLite" in text
    assert not (tmp_path / ("x" * 100)).exists()


@pytest.mark.usefixtures("little_memory")
def test_a_table_larger_than_memory_is_refused_before_it_is_read(tmp_path, frame):
    pd.concat([frame] * 10, ignore_index=True).to_parquet(tmp_path / "t.parquet")
    text = refused("select", tmp_path / "t.parquet")
    assert "t.parquet: its 400 rows of 6 columns: needs about 0.0 GB of memory, and this" in text


def test_a_folder_that_takes_minutes_says_so_before_it_is_read(tmp_path, frame, monkeypatch):
    (tmp_path / "tables").mkdir()
    frame.to_parquet(tmp_path / "tables" / "a.parquet")
    monkeypatch.setattr("idfsmec.federated.streaming._SECONDS_PER_VALUE", 1.0)
    code, text = run("select", tmp_path / "tables", "-o", tmp_path / "r.csv")
    assert code == 0, text
    assert "declares 40 rows of 4 columns; reading them takes about 3 minutes" in text


# --- recordings ---------------------------------------------------------------------------


def features(folder, name):
    (folder / "study.csv").write_text(f"path,subject,label\n{name},s1,HC\n")
    (folder / "config.toml").write_text("detect = false\n")
    words = ("-o", folder / "t.parquet", "--config", folder / "config.toml")
    return run("features", folder / "study.csv", *words)


@pytest.mark.parametrize("field", ["DataFile", "MarkerFile"])
@pytest.mark.parametrize("place", ["../elsewhere/", "/etc/", "{folder}/../elsewhere/"])
def test_a_brainvision_header_names_no_file_outside_its_folder(tmp_path, field, place):
    for folder in ("study", "elsewhere"):
        (tmp_path / folder).mkdir()
        write_raw(make_raw(seconds=20), tmp_path / folder / "s1.vhdr")
    header = tmp_path / "study" / "s1.vhdr"
    outside = place.format(folder=tmp_path / "study")
    header.write_text(header.read_text().replace(f"{field}=", f"{field}={outside}"))
    code, text = features(tmp_path / "study", "s1.vhdr")
    assert code == 2, text
    assert "s1.vhdr: names " in text
    assert "outside its folder" in text


def test_a_brainvision_header_may_name_links_of_its_folder(tmp_path):
    (tmp_path / "annex").mkdir()
    write_raw(make_raw(seconds=20), tmp_path / "s1.vhdr")
    (tmp_path / "s1.eeg").rename(tmp_path / "annex" / "key")
    (tmp_path / "s1.eeg").symlink_to(tmp_path / "annex" / "key")
    code, text = features(tmp_path, "s1.vhdr")
    assert code == 0, text


def test_a_channel_of_an_edf_file_without_physical_range_is_always_missing(tmp_path):
    signals = np.random.default_rng(0).normal(scale=20, size=(3, 5000))
    made = [
        edfio.EdfSignal(
            samples, 250, label=name, physical_dimension="uV", physical_range=(-99, 99)
        )
        for name, samples in zip(("Fp1", "Cz", "O1"), signals.clip(-99, 99), strict=True)
    ]
    edfio.Edf(made).write(tmp_path / "s1.edf")
    content = bytearray((tmp_path / "s1.edf").read_bytes())
    begin = 256 + 3 * 104 + 8  # the physical minimum of the second of three signals
    content[begin : begin + 8] = b"99      "
    (tmp_path / "s1.edf").write_bytes(content)
    code, text = features(tmp_path, "s1.edf")
    assert code == 0, text
    observed = FeatureTable.read(tmp_path / "t.parquet").observed
    assert observed.all().to_dict() == {"Fp1": True, "Cz": False, "O1": True}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", ["s1_raw.fif.gz", "s1.edf"])
def test_a_recording_larger_than_memory_is_refused_before_it_is_read(tmp_path, name):
    raw = make_raw(seconds=20)
    if name.endswith(".gz"):
        raw.save(tmp_path / name, verbose="error")
    else:
        write_raw(raw, tmp_path / name)
    code, text = features(tmp_path, name)
    assert code == 2, text
    assert f"{name}: 3 channels of 0.0 hours: needs about 0.0 GB of memory" in text


@pytest.mark.parametrize("line", ["sub-02\tMDD", "sub-02\tMDD\t30\t4"])
def test_a_ragged_table_of_participants_is_refused_with_the_line(tmp_path, line):
    pytest.importorskip("mne_bids")
    table = f"participant_id\tgroup\tage\nsub-01\tHC\t31\n{line}\n"
    (tmp_path / "participants.tsv").write_text(table)
    text = refused("features", tmp_path, "-o", tmp_path / "t.parquet")
    assert (
        f"participants.tsv, line 3: has {line.count(chr(9)) + 1} cells, and the header has 3"
        in text
    )
