import contextlib
import dataclasses
import hashlib
import json
import os
import sqlite3
import subprocess
import sys

import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol
from idfsmec.evaluation.store import Store, StoredTable, TaskResult
from idfsmec.evaluation.tasks import plan_folds
from idfsmec.prediction.methods import find_methods

from .cohorts import make_arrays, make_cohort

HOLD = """
import sys
from idfsmec.evaluation.store import Store
store = Store(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def units():
    arrays = make_arrays(make_cohort())
    protocol = Protocol(rates=[0.1], n_splits=4)
    return list(plan_folds(arrays, find_methods(["random"]), protocol))


@pytest.fixture
def store(tmp_path, units):
    """A store that knows the table of the units."""
    with Store(tmp_path) as store:
        columns = ("E1__a", "E1__b", "E2__a")
        store.add_tables([StoredTable("t", units[0].digest, columns, {})])
        yield store


def result(value=0.1):
    return TaskResult([{"k": 1, "accuracy": value, "chosen": True}], [0.5], [[2, 0]], ["a note"])


def test_what_is_added_comes_back_to_the_last_digit(tmp_path, store, units):
    value = 0.1 + 0.2
    store.set_plan("accuracy", units)
    store.add(units[1], result(value))
    assert store.done_keys() == {units[1].key}
    store.close()
    with Store(tmp_path, read_only=True) as reader:
        (one,) = reader.planned()
    assert (one.experiment, one.task["fold"]) == ("accuracy", 1)
    assert one.table.columns == ("E1__a", "E1__b", "E2__a")
    found = one.result
    assert found.rows[0]["accuracy"] == value
    assert (found.rankings, found.notes, found.seconds) == ([[2, 0]], ["a note"], [0.5])


def test_a_failure_is_kept_apart_counted_and_gone_after_success(store, units):
    store.set_plan("accuracy", units)
    for message in ("first", "second"):
        store.add(units[0], TaskResult(error=message))
    assert store.done_keys() == set()
    (failure,) = store.failures()
    assert (failure["traceback"], failure["attempts"]) == ("second", 2)
    store.add(units[0], result())
    assert store.failures() == []
    assert store.done_keys() == {units[0].key}


def test_results_of_units_that_are_no_longer_planned_stay_but_are_not_shown(store, units):
    store.set_plan("accuracy", units)
    store.add(units[0], result())
    store.set_plan("accuracy", units[1:])
    assert store.planned() == []
    store.set_plan("accuracy", units)
    assert len(store.planned()) == 1


def test_an_error_inside_a_transaction_leaves_nothing_behind(store, units):
    store.set_plan("accuracy", units)
    with pytest.raises(TypeError, match="not JSON serializable"):
        store.add(units[0], TaskResult(notes=[object()]))
    store.add(units[1], result())
    assert store.done_keys() == {units[1].key}


@pytest.mark.slow
def test_a_second_process_is_refused_until_the_first_is_gone_even_if_killed(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    try:
        assert first.stdout.readline().strip() == b"held"
        with pytest.raises(InputError, match="another process is writing"):
            Store(tmp_path)
        with Store(tmp_path, read_only=True) as reader:
            assert reader.done_keys() == set()
    finally:
        first.kill()
        first.communicate()
    with Store(tmp_path) as store:
        assert store.done_keys() == set()


def test_a_store_of_another_format_is_refused(tmp_path):
    with Store(tmp_path) as store:
        store.set_meta("format", 99)
    with pytest.raises(InputError, match=r"^\S+store\.sqlite has format 99, this version"):
        Store(tmp_path)
    Store(tmp_path / "other").close()  # and the lock of the refused one is no trouble


def test_somebody_elses_database_is_refused_and_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / "store.sqlite") as theirs:
        theirs.execute("CREATE TABLE mine (a)")
    theirs.close()
    before = (tmp_path / "store.sqlite").read_bytes()
    with pytest.raises(InputError, match="is not a store of results"):
        Store(tmp_path)
    assert (tmp_path / "store.sqlite").read_bytes() == before


ENDLESS = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
HOSTILE = {
    "view 'done'": [
        "DROP TABLE done",
        "CREATE VIEW done (key, task, rows, seconds, rankings, notes, found, finished, checksum) "
        "AS " + ENDLESS.replace("SELECT i FROM", "SELECT i, i, i, i, i, i, i, i, i FROM"),
    ],
    "trigger 'gone'": [
        "CREATE TRIGGER gone AFTER INSERT ON done BEGIN DELETE FROM done; END",
    ],
    "index 'slow'": ["CREATE INDEX slow ON done (rows)"],
    "other columns": [
        "ALTER TABLE meta RENAME TO was",
        "CREATE VIEW meta (value) AS " + ENDLESS,
    ],
    "not those of this format": ["CREATE TABLE more (a)"],
    "not those": ["ALTER TABLE done ADD COLUMN more AS (hex(zeroblob(1e8)))"],
}


@pytest.mark.parametrize("part", HOSTILE)
@pytest.mark.parametrize("read_only", [False, True])
def test_views_triggers_and_other_columns_in_a_store_are_refused(tmp_path, part, read_only):
    Store(tmp_path).close()
    with contextlib.closing(sqlite3.connect(tmp_path / "store.sqlite")) as changed:
        for statement in HOSTILE[part]:
            changed.execute(statement)
        changed.commit()
    said = "view 'meta'" if part == "other columns" else part
    with pytest.raises(InputError, match=said):
        Store(tmp_path, read_only=read_only)


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "store.sqlite"
    path.write_text("subject,label\n" * 100)
    with pytest.raises(InputError, match="is not a store of results"):
        Store(tmp_path)
    assert path.read_text().startswith("subject,label")


def test_a_folder_without_a_store_has_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match=r"no store\.sqlite"):
        Store(tmp_path, read_only=True)


def test_a_plan_may_keep_what_is_about_other_tables(store, units):
    other = [dataclasses.replace(units[0], key="other", table="u")]
    store.add_tables([StoredTable("u", units[0].digest, ("E1__a",), {})])
    for plan in (units, other):
        store.set_plan("ranking", plan, keep=True)
    for unit in (*units, *other):
        store.add(unit, result())
    assert [one.table.name for one in store.planned()] == ["t"] * 4 + ["u"]


def test_another_table_under_a_known_name_is_refused_or_takes_its_place(store, units):
    store.set_plan("accuracy", units)
    store.add(units[0], result())
    other = StoredTable("t", "another digest", ("F3__a",), {})
    with pytest.raises(InputError, match=r"another table named 't'.*overwrite=True") as caught:
        store.add_tables([other])
    assert caught.value.argument == "overwrite"
    assert len(store.planned()) == 1
    store.add_tables([other], overwrite=True)
    assert store.planned() == []
    assert store.tables() == {"t": other}


def test_a_closed_store_is_a_single_file(tmp_path, units):
    with Store(tmp_path) as store:
        store.set_plan("accuracy", units)
    assert {path.name for path in tmp_path.iterdir()} == {"store.sqlite", "store.lock"}
    copy = sqlite3.connect(tmp_path / "store.sqlite")
    assert copy.execute("SELECT count(*) FROM plan").fetchone() == (4,)
    copy.close()


def checksum(values):
    return hashlib.sha256(json.dumps(values, default=repr).encode()).hexdigest()[:16]


def test_a_store_written_by_hand_as_format_6_is_read(tmp_path):
    """What is on users' disks: the format, its keys, and checksums of all that a row holds."""
    db = sqlite3.connect(tmp_path / "store.sqlite")
    tables = {
        "meta": ("name", "value"),
        "tables": ("name", "digest", "columns", "about"),
        "done": (
            *("key", "task", "rows", "seconds", "rankings", "notes", "found"),
            *("versions", "finished"),
        ),
        "failed": ("key", "task", "error", "attempts", "finished"),
        "plan": ("experiment", "position", "key", "task", "table_name", "digest"),
    }
    for name, columns in tables.items():
        key = "experiment, position" if name == "plan" else columns[0]
        db.execute(f"CREATE TABLE {name} ({', '.join(columns)}, checksum, PRIMARY KEY ({key}))")
    rows = {
        "meta": [("format", "6"), ("seeds", "[0,1]")],
        "tables": [("t", "d", '["E1__a"]', "{}")],
        "done": [
            ("k", '{"fold":0}', '[{"k":1}]', "[0.5]", "[[0]]", "[]", "{}", "{}", "2026-01-01")
        ],
        "plan": [("accuracy", 0, "k", '{"fold":0}', "t", "d")],
    }
    for name, lines in rows.items():
        for values in lines:
            marks = ", ".join("?" * (len(values) + 1))
            db.execute(f"INSERT INTO {name} VALUES ({marks})", [*values, checksum(values)])  # noqa: S608
    db.commit()
    db.close()
    with Store(tmp_path) as store:
        (one,) = store.planned()
        assert (one.task, one.result.rows, one.result.seconds) == ({"fold": 0}, [{"k": 1}], [0.5])
        assert store.get_meta("seeds") == [0, 1]
        assert store.get_meta("never") is None
    with Store(tmp_path / "new") as made:
        for name in tables:
            keys = [row[5] > 0 for row in made._db.execute(f"PRAGMA table_info({name})")]
            assert keys == [i < (2 if name == "plan" else 1) for i in range(len(keys))]


def test_what_is_known_of_runs_is_added_up(store):
    store.add_meta("methods", {"a": 1})
    store.parsed = "kept"
    store.add_meta("methods", {"a": 1})  # nothing new
    assert store.parsed == "kept"
    store.add_meta("methods", {"b": [2]})
    assert store.parsed is None
    assert store.get_meta("methods") == {"a": 1, "b": [2]}


@pytest.mark.parametrize("behind", [False, True])
def test_a_reader_leaves_part_of_the_results_in_a_second_file_only_if_it_is_behind(
    tmp_path, behind
):
    store = Store(tmp_path)
    store.set_meta("first", 1)
    reader = sqlite3.connect(tmp_path / "store.sqlite")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM meta").fetchall()
    if behind:
        store.set_meta("second", 2)
        with pytest.warns(UserWarning, match=r"part of the results is in store\.sqlite-wal"):
            store.close()
    else:
        store.close()  # a warning would be an error
    reader.close()
    with Store(tmp_path) as store:
        assert store.get_meta("first") == 1
    assert not (tmp_path / "store.sqlite-wal").exists()


@pytest.mark.parametrize("place", ["row", "index"])
def test_damage_is_refused_and_mended_where_results_may_be_replaced(tmp_path, units, place):
    with Store(tmp_path) as store:
        store.add_tables([StoredTable("t", units[0].digest, ("E1__a",), {})])
        for unit in units[:2]:
            store.add(unit, result())
    file = tmp_path / "store.sqlite"
    if place == "row":
        with sqlite3.connect(file) as db:
            db.execute("UPDATE done SET notes = '[]' WHERE key = ?", [units[0].key])
        db.close()
    else:  # the key is in the row and in the index of keys: one of them changes
        content, key = bytearray(file.read_bytes()), units[0].key.encode()
        found = [i for i in range(len(content)) if content.startswith(key, i)]
        rows = [i for i in found if b"a note" in content[i : i + 600]]
        (at,) = set(found) - set(rows)
        content[at] ^= 1
        file.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(InputError, match="of its rows are not as they were written"):
            Store(tmp_path, read_only=read_only)
    with Store(tmp_path, overwrite=True) as store:
        kept = {"row": {units[1].key}, "index": {unit.key for unit in units[:2]}}[place]
        assert store.done_keys() == kept
    with Store(tmp_path) as store:
        assert store.done_keys() == kept
