"""A site releases each participant once: what its ledger knows, refuses and leaves behind."""

import sqlite3
import threading
import time

import numpy as np
import pandas as pd
import pytest

from idfsmec import FeatureTable, cli, summarise
from idfsmec.errors import InputError
from idfsmec.federated import Ledger
from idfsmec.federated import ledger as ledgers
from idfsmec.federated.ledger import Participants
from tests.federated.cohorts import cohort

KEY = b"k" * 32
OTHER_NAMES = {"F3": "C3", "Cz": "Pz", "O2": "Oz"}


def release(table, path, **options):
    with Ledger(path) as ledger:
        return summarise(table, study_key=KEY, ledger=ledger, **options)


def renamed(table, rename, **parts):
    subjects = [rename(name) for name in table.subjects]
    return FeatureTable(parts.get("X", table.X.reset_index(drop=True)), table.y, subjects)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "ledger.sqlite"


@pytest.fixture(scope="module")
def table():
    return cohort(120, missing=0.1)


def test_the_same_release_again_changes_nothing(table, path):
    first = release(table, path)
    before = path.read_bytes()
    assert release(table, path).sites[0].digest == first.sites[0].digest
    assert path.read_bytes() == before


def test_a_participant_is_released_once(table, path):
    release(table.take((table.subjects < "s060").to_numpy()), path)
    with pytest.raises(InputError, match=r"release 1 has participants.*s059\. A participant is"):
        release(table.take((table.subjects >= "s059").to_numpy()), path)
    with pytest.raises(InputError, match="s000, s001, s002 and 57 more"):
        release(table, path)
    later = release(table.take((table.subjects >= "s060").to_numpy()), path)
    assert later.sites[0].subjects.sum() == 60
    with pytest.raises(InputError, match=r"release 2 has participants.*s119"):
        release(cohort(40, seed=8, prefix="x").concat([cohort(40, seed=8, prefix="x"),
            table.take((table.subjects == "s119").to_numpy())]), path)  # fmt: skip


@pytest.mark.parametrize("rename", [str.upper, "sub-{}".format, lambda name: f"s{int(name[1:])}"])
def test_names_are_compared_without_case_padding_and_sub(table, path, rename):
    release(table, path)
    with pytest.raises(InputError, match="has participants of this one"):
        release(renamed(table, rename, X=table.X.reset_index(drop=True) + 5.0), path)


def changes(table):
    """The table as it may come back: recomputed, cut down, renamed, harmonized."""
    rng = np.random.default_rng(4)
    X = table.X.reset_index(drop=True)
    yield "the same", X
    yield "last digits", X * (1 + 1e-12 * rng.normal(size=X.shape))
    yield "other digits", X + 1e-3 * rng.normal(size=X.shape)
    yield "one feature fewer", X.drop(columns=["Cz__theta"])
    yield "other units", 1e6 * X
    yield "harmonized", 0.8 * X + np.arange(12)
    yield "renamed channels", X.rename(columns=lambda name: name.replace("F3", "E3"))
    yield "all channels renamed", X.rename(columns=lambda name: OTHER_NAMES[name[:2]] + name[2:])


@pytest.mark.parametrize("case", range(8))
def test_a_participant_under_another_name_is_known_by_values(table, path, case):
    release(table, path)
    name, X = list(changes(table))[case]
    # The units of a site need all its participants.
    last = "s999" if name in ("harmonized", "other units") else "s040"
    some = (table.subjects < last).to_numpy()
    again = renamed(table, lambda name: f"p{name[1:]}{name[-1]}x", X=X).take(some)
    with pytest.raises(InputError, match=r"participant p0\d+x has nearly the values of s0\d\d in"):
        release(again, path)


def test_other_participants_are_not_taken_for_known_ones(table, path):
    release(table, path)
    for seed in range(3):
        later = release(cohort(120, seed=20 + seed, prefix=f"new{seed}_"), path)
        assert later.sites[0].subjects.sum() == 120


def test_a_distance_is_the_root_mean_square_difference():
    rng = np.random.default_rng(0)
    columns = [f"{channel}__{feature}" for channel in "abc" for feature in "wxyz"]
    ours = pd.DataFrame(rng.normal(size=(200, 12)), columns=columns)
    spread = (ours.quantile(0.75) - ours.quantile(0.25)) / 1.3489795  # 2 * 0.67449
    moved = ours.iloc[:2] + 0.1 * spread.to_numpy()
    distances = Participants(ours).distances(Participants(moved))
    assert distances[0, 0] == pytest.approx(0.1, abs=0.02)
    assert distances[0, 1] > 0.4
    few = Participants(ours[columns[:9]])
    assert np.isinf(few.distances(few)).all()
    ten = Participants(ours[columns[:10]])
    assert np.diag(ten.distances(ten)).max() < 1e-7


def test_values_are_kept_to_a_hundredth_of_a_deviation():
    means = cohort(40, epochs=1).X.reset_index(drop=True)
    means.index = [f"p{i}" for i in range(40)]
    means["F3__flat"] = 7.0
    again = Participants.unpack(Participants(means).pack()).means
    pd.testing.assert_frame_equal(again, means, atol=0.01, rtol=0.0)


def test_cells_cannot_become_smaller_later(table, path):
    release(table, path, min_subjects=10)
    other = cohort(80, seed=5, prefix="t")
    with pytest.raises(InputError, match="give 10 or more, not 9"):
        release(other, path, min_subjects=9)
    release(other, path, min_subjects=12)
    with pytest.raises(InputError, match="give 12 or more, not 10"):
        release(cohort(80, seed=6, prefix="u"), path, min_subjects=10)


def test_a_refused_release_leaves_nothing(path, tmp_path):
    bad = cohort(60, channels=("F3", "F4", "FAA"))
    with pytest.raises(InputError, match="FAA"):
        release(bad, path)
    assert list(tmp_path.iterdir()) == []
    release(cohort(60), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="has participants"):
        release(cohort(62), path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_only_this_user_reads_the_ledger(table, path):
    release(table, path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_ledger_is_not_lost_silently(table, path):
    release(table, path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="written by another version"):
        release(table, path)
    path.write_bytes(b"something else" * 100)
    with pytest.raises(InputError, match=r"ledger\.sqlite: not a readable ledger.*backup"):
        release(table, path)


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    return thread


def test_a_second_process_waits_and_is_refused_if_participants_overlap(table, path):
    problems = []

    def second():
        try:
            release(cohort(60), path)
        except InputError as error:
            problems.append(str(error))

    with Ledger(path) as ledger:
        thread = in_a_thread(second)
        assert thread.is_alive()
        summarise(table, study_key=KEY, ledger=ledger)
    thread.join()
    assert "release 1 has participants of this one" in problems[0]


def test_who_waits_while_a_first_release_is_refused_does_not_write_to_a_removed_file(path):
    ledger = Ledger(path).__enter__()
    thread = in_a_thread(lambda: release(cohort(60), path))
    ledger.__exit__(InputError, InputError("refused"), None)
    thread.join()
    with pytest.raises(InputError, match="has participants"):
        release(cohort(62), path)


def test_a_ledger_that_stays_busy_is_named(path, monkeypatch):
    monkeypatch.setattr(ledgers, "_WAIT", 0.1)
    with Ledger(path), pytest.raises(InputError, match="another process has used the ledger"):
        Ledger(path).__enter__()


@pytest.mark.parametrize(
    ("platform", "wanted"),
    [
        ("linux", "xdg/idfsmec/ledger.sqlite"),
        ("darwin", "Library/Application Support/idfsmec/ledger.sqlite"),
        ("win32", "local/idfsmec/ledger.sqlite"),
    ],
)
def test_the_ledger_is_in_the_users_data_folder(monkeypatch, tmp_path, platform, wanted):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert ledgers.default_ledger() == tmp_path / wanted


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path):
    """The command with a ledger and a key of its own."""

    def summarised(table, name="a", **options):
        table.write(tmp_path / "table.parquet")
        parts = {"ledger": tmp_path / "ledger.sqlite", "study_key": tmp_path / "study.key"}
        return cli.summarise(
            tmp_path / "table.parquet", tmp_path / "out" / f"{name}.summary", force=True,
            **parts | options,
        )  # fmt: skip

    return summarised


def test_the_command_leaves_no_key_no_ledger_and_no_folder_when_it_refuses(command, tmp_path):
    with pytest.raises(InputError, match="FAA"):
        command(cohort(60, channels=("F3", "F4", "FAA")), study_key=tmp_path / "keys" / "new.key")
    assert [file.name for file in tmp_path.iterdir()] == ["table.parquet"]


def test_a_release_that_was_never_sent_is_replaced(command, tmp_path):
    command(cohort(60))
    first = tmp_path / "out" / "a.summary"
    with pytest.raises(InputError, match=r"--replaces FILE --never-sent"):
        command(cohort(62), "b")
    for alone in ({"replaces": first}, {"never_sent": True}):
        with pytest.raises(InputError, match="go together"):
            command(cohort(62), "b", **alone)
    command(cohort(62), "b", replaces=first, never_sent=True)
    with pytest.raises(InputError, match="release 1 has participants"):
        command(cohort(60))
    with pytest.raises(InputError, match="has no such release"):
        command(cohort(64), replaces=first, never_sent=True)


def test_a_refused_replacement_keeps_the_release_on_record(command, tmp_path):
    command(cohort(60))
    with pytest.raises(InputError, match="FAA"):
        command(
            cohort(60, channels=("F3", "F4", "FAA")),
            replaces=tmp_path / "out" / "a.summary",
            never_sent=True,
        )
    with pytest.raises(InputError, match="has participants"):
        command(cohort(62))


def test_the_key_is_made_once_and_private(command, tmp_path):
    first = command(cohort(200, missing=0.0))
    key = (tmp_path / "study.key").read_bytes()
    assert len(key) == 32
    assert (tmp_path / "study.key").stat().st_mode & 0o777 == 0o600
    assert command(cohort(200, missing=0.0)).sites[0].digest == first.sites[0].digest
    assert (tmp_path / "study.key").read_bytes() == key
