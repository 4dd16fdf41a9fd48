"""The store of a benchmark: one writer, no lock that outlives it, and damage that is named."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from pandas.testing import assert_frame_equal
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import Results, accuracy
from idfsmec.evaluation.store import Store
from idfsmec.table import FeatureTable
from tests.trust.conftest import make_table

pytestmark = pytest.mark.slow

SOURCE_TREE = Path(__file__).parents[2] / "src"
WRITE_ON = """
import sys
from idfsmec.evaluation.store import Store
with Store(sys.argv[1]) as store:
    number = store.get_meta("number") or 0
    while True:
        number += 1
        store.set_meta("number", number)
        store.set_meta(f"filler {number % 50}", "x" * 3000)
        print(number, flush=True)
"""


def benchmark(table, out, *more):
    command = ["benchmark", str(table), "--out", str(out), "--methods", "IDFS-MEC,ANOVA F"]
    options = ["--rates", "0.1", "--k", "2", "--folds", "2", "--jobs", "1", "--quiet"]
    return CliRunner().invoke(app, [*command, *options, *more])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    assert benchmark(make_table(folder / "small.parquet"), folder / "out").exit_code == 0
    return folder / "out"


@contextmanager
def writing(folder):
    """Another process that writes to a store until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_ON, str(folder)],
        env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)},
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        try:
            yield writer
        finally:
            os.kill(writer.pid, signal.SIGKILL)


@pytest.mark.long
def test_a_second_run_on_one_store_is_refused_clearly(small_table, tmp_path):
    with writing(tmp_path / "out") as writer:
        assert writer.stdout.readline()
        result = benchmark(small_table, tmp_path / "out")
        with Store(tmp_path / "out", read_only=True) as store:  # who only looks may look
            assert store.get_meta("number") >= 1
    assert result.exit_code == 2
    assert "another process is writing" in " ".join(result.stderr.split())
    again = benchmark(small_table, tmp_path / "out")
    assert again.exit_code == 0, again.stderr


@pytest.mark.long
def test_killed_writers_leave_no_lock_and_lose_nothing_that_was_finished(tmp_path):
    said = 0
    for lines in (3, 40, 160):
        with writing(tmp_path) as writer:
            for _ in range(lines):
                said = int(writer.stdout.readline())
        with Store(tmp_path) as store:
            assert store.get_meta("number") >= said


def test_a_torn_log_loses_what_was_not_finished_and_nothing_else(tmp_path):
    with Store(tmp_path) as store:
        store.set_meta("first", 1)
    with writing(tmp_path) as writer:
        for _ in range(20):
            writer.stdout.readline()
    log = tmp_path / "store.sqlite-wal"
    log.write_bytes(log.read_bytes()[:-5000])
    with Store(tmp_path) as store:
        assert store.get_meta("first") == 1
        assert store.get_meta("number") > 0


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("results.parquet", "cut"),
        ("results.parquet", "random"),
        ("selections.parquet", "empty"),
        ("protocol.json", "cut"),
        ("protocol.json", "gone"),
        ("tables.json", "random"),
        ("convergence.json", "empty"),
    ],
)
def test_a_damaged_export_harms_nothing_and_the_same_command_mends_it(
    finished, small_table, tmp_path, name, damage
):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    whole = (out / name).read_bytes()
    if damage == "gone":
        (out / name).unlink()
    else:
        broken = {"cut": whole[:-20], "empty": b"", "random": b"\xff\x00[" * 40}[damage]
        (out / name).write_bytes(broken)
    assert_frame_equal(Results.read(out).scores, Results.read(finished).scores)
    if damage == "cut":
        assert benchmark(small_table, out).exit_code == 0
        assert (out / name).stat().st_size > len(broken)


@pytest.mark.parametrize("damage", ["cut", "middle", "empty pages", "text"])
def test_a_damaged_store_is_named_and_left_as_it_is(small_table, tmp_path, damage):
    with Store(tmp_path / "out") as store:
        for number in range(60):
            store.set_meta(f"filler {number}", "x" * 3000)
    path = tmp_path / "out" / "store.sqlite"
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(
        {
            "cut": whole[:half],
            "middle": whole[:half] + np.random.default_rng(0).bytes(8192) + whole[half + 8192 :],
            "empty pages": whole[:4096] + bytes(20480) + whole[24576:],
            "text": b"these are no results\n" * 500,
        }[damage]
    )
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(InputError, match=r"store\.sqlite.*move it away"):
            Store(tmp_path / "out", read_only=read_only)
    result = benchmark(small_table, tmp_path / "out")
    assert result.exit_code == 2
    assert "store.sqlite" in result.stderr
    assert path.read_bytes() == before


def test_a_changed_digit_is_found_named_and_only_its_task_computed_again(
    finished, small_table, tmp_path
):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    whole, expected = (out / "store.sqlite").read_bytes(), Results.read(out).scores
    before, after = whole.rsplit(b'"chosen":true', 1)
    (out / "store.sqlite").write_bytes(before + b'"chosen":null' + after)
    result = benchmark(small_table, out)
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "store.sqlite is damaged: 1 of its rows" in said
    assert "command again with --force" in said
    result = CliRunner().invoke(app, ["report", str(out)])
    assert result.exit_code == 2
    assert benchmark(small_table, out, "--force").exit_code == 0
    scores = Results.read(out).scores
    assert_frame_equal(scores.drop(columns="seconds"), expected.drop(columns="seconds"))
    assert (scores["seconds"] != expected["seconds"]).sum() == 1


def test_flipped_bytes_are_found_or_change_nothing(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "out")
    path, rng = tmp_path / "out" / "store.sqlite", np.random.default_rng(0)
    whole, expected, named = path.read_bytes(), Results.read(finished), []
    for _ in range(25):
        damaged = bytearray(whole)
        for place in rng.choice(len(whole), 5):
            damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            results = Results.read(tmp_path / "out")
        except InputError as error:
            named.append("store.sqlite" in str(error))
            continue
        assert_frame_equal(results.scores, expected.scores)
        assert_frame_equal(results.selections, expected.selections)
        assert (results.protocol, results.tables) == (expected.protocol, expected.tables)
    assert len(named) > 5
    assert all(named)


@pytest.mark.parametrize("place", [0, 1, 2])  # a row, an index of rows, a plan
def test_a_damaged_key_is_computed_again(finished, small_table, tmp_path, place):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    with Store(out, read_only=True) as store:
        key = min(store.done_keys()).encode()
    parts = (out / "store.sqlite").read_bytes().split(key)
    keys = [b"x" + key[1:] if i == place else key for i in range(len(parts) - 1)]
    damaged = b"".join(part + one for part, one in zip(parts, [*keys, b""], strict=True))
    (out / "store.sqlite").write_bytes(damaged)
    assert "command again with --force" in " ".join(benchmark(small_table, out).stderr.split())
    assert benchmark(small_table, out, "--force").exit_code == 0
    scores, expected = (Results.read(each).scores for each in (out, finished))
    assert_frame_equal(scores.drop(columns="seconds"), expected.drop(columns="seconds"))


@pytest.mark.parametrize("name", [b"secands", b"sec nds", b"sec\xe1nds"])
def test_damaged_names_of_columns_are_named(finished, tmp_path, name):
    whole = (finished / "store.sqlite").read_bytes()
    damaged = whole.replace(b"rows, seconds,", b"rows, " + name + b",")
    assert damaged != whole
    (tmp_path / "store.sqlite").write_bytes(damaged)
    for read_only in (True, False):
        with pytest.raises(InputError, match=r"store\.sqlite is not a store.*move it away"):
            Store(tmp_path, read_only=read_only)


@pytest.mark.parametrize("name", ["store.sqlite", "store.lock"])
def test_a_pipe_in_place_of_a_store_is_refused(small_table, tmp_path, name):
    os.mkfifo(tmp_path / name)
    result = benchmark(small_table, tmp_path)
    assert result.exit_code == 2
    assert f"{name}: is a pipe" in " ".join(result.stderr.split())


def test_a_folder_deleted_during_a_run_ends_it_at_once(tmp_path):
    out, events = tmp_path / "out", []

    def delete(event):
        events.append(event)
        if event.done == 1:
            shutil.rmtree(out)

    table = FeatureTable.read(make_table(tmp_path / "small.parquet"))
    protocol = {"rates": [0.1], "n_splits": 4, "ks": [2]}
    with pytest.raises(OSError, match=r"store\.sqlite: deleted or moved during the run"):
        accuracy(table, out, methods=["ANOVA F"], protocol=protocol, n_jobs=1, progress=delete)
    assert [event.done for event in events] == [0, 1]
    assert not out.exists()


def test_an_idle_reader_does_not_keep_results_out_of_the_file(finished, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    with Store(folder, read_only=True) as reader:
        with Store(folder) as store:
            reader.done_keys()
            store.set_meta("word", "kept")
        shutil.copy(folder / "store.sqlite", tmp_path / "store.sqlite")  # the one file alone
    with Store(tmp_path, read_only=True) as copy:
        assert copy.get_meta("word") == "kept"


def test_a_busy_reader_is_said_with_what_to_copy(finished, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    store = Store(folder)
    reader = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM meta").fetchone()
    store.set_meta("word", "kept")
    with pytest.warns(UserWarning, match=r"part of the results is in store\.sqlite-wal still"):
        store.close()
    reader.close()
    with Store(folder, read_only=True) as whole:
        assert whole.get_meta("word") == "kept"


def test_a_disk_without_locks_is_not_taken_for_another_run(tmp_path, monkeypatch):
    class Lockless(sqlite3.Connection):
        def execute(self, *args):
            raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Lockless))
    with pytest.raises(InputError, match="cannot be locked there"):
        Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["store.lock"]
