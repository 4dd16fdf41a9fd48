"""Parts of a run: array jobs share its tasks without a scheduler, and are put together."""

import json
import sqlite3

import pytest
from pandas.testing import assert_frame_equal

from idfsmec import _files
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results, accuracy
from idfsmec.evaluation.run import ResultsFolder
from idfsmec.evaluation.store import Store

from .cohorts import OURS, comparable, make_cohort

PROTOCOL = Protocol(rates=[0.0, 0.3], n_splits=2, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)
METHODS = [OURS, "ANOVA F", "random"]


def run(out):
    return accuracy(make_cohort(), out, methods=METHODS, protocol=PROTOCOL, n_jobs=1)


def test_parts_together_are_the_whole_run(tmp_path):
    whole = run(tmp_path / "whole")
    out, done = tmp_path / "out", []
    for number in (1, 2, 2, 3):  # one of them twice
        with ResultsFolder(out, part=(number, 3)) as folder:
            done.append(len(run(folder).scores))
            assert folder.path == out / f"part-{number}-of-3"
    assert done[1] == done[2]
    assert not (out / "store.sqlite").exists()
    assert sum(done) - done[1] == len(whole.scores)
    assert min(done) > 0
    seen = []
    together = accuracy(
        make_cohort(), out, methods=METHODS, protocol=PROTOCOL, n_jobs=1, progress=seen.append
    )
    assert {event.task for event in seen} == {"ranking"}  # no fold was computed again
    for part, wanted in zip(comparable(together), comparable(whole), strict=True):
        assert_frame_equal(part, wanted)
    assert_frame_equal(together.ranking, whole.ranking)
    assert Results.read(out).scores.equals(together.scores)


def test_versions_that_differ_are_named_with_the_tasks_they_computed(tmp_path):
    with ResultsFolder(tmp_path / "out", part=(1, 2)) as folder:
        run(folder)
    with sqlite3.connect(folder.path / "store.sqlite") as db:
        (text,) = db.execute("SELECT versions FROM done LIMIT 1").fetchone()
    here = json.loads(text)
    assert {"idfsmec", "numpy", "scipy", "scikit-learn"} <= set(here)
    with Store(folder.path) as store:
        rows = store._db.execute("SELECT * FROM done").fetchall()
        n_rows = len(rows)
        for key, *others, _, finished, _ in rows:
            store._insert("done", key, *others, json.dumps({**here, "numpy": "1.0"}), finished)
    versions = run(tmp_path / "out").environment["versions"]
    assert f"1.0 ({n_rows} tasks)" in versions["numpy"]
    assert here["numpy"] in versions["numpy"]
    assert "tasks" not in versions["scipy"]


def test_a_network_file_system_is_refused_with_the_remedy(tmp_path, monkeypatch):
    run_there = tmp_path / "there"
    Store(run_there).close()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    path = _files.Path
    monkeypatch.setattr(
        _files, "Path", lambda *p: mounts if p[0].startswith("/proc") else path(*p)
    )
    assert _files.file_system(tmp_path / "a" / "b") == "nfs4"
    with pytest.raises(InputError, match=r"network file system \(nfs4\).*\$TMPDIR"):
        Store(run_there)
    Store(run_there, read_only=True).close()
