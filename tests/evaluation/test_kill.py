"""A run that is killed outright goes on where it stopped, and ends as if nothing had been."""

import os
import signal
import subprocess
import sys

from pandas.testing import assert_frame_equal

from idfsmec.evaluation import Protocol, _run, accuracy
from idfsmec.evaluation.store import Store

from .cohorts import comparable, make_cohort

SCRIPT = """
import sys
from idfsmec.evaluation import Protocol, accuracy, store
from idfsmec.table import FeatureTable

class Talking(store.Store):
    def add(self, unit, outcome):
        super().add(unit, outcome)
        print("done", flush=True)

from idfsmec.evaluation import _run
_run.Store = Talking
table, out, jobs = sys.argv[1:]
protocol = Protocol(rates=[0.0, 0.3], n_splits=3, ks=[2, 4])
accuracy({"table": FeatureTable.read(table)}, out, methods=["random", "ANOVA F"],
         protocol=protocol, n_jobs=int(jobs), progress=False)
"""
PROTOCOL = Protocol(rates=[0.0, 0.3], n_splits=3, ks=[2, 4])


def kill_after(n_units, table, out, jobs):
    """Run in a process of its own and kill it after some units; say how many it reported."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(table), str(out), str(jobs)],
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    lines = 0
    for _ in process.stdout:
        lines += 1
        if lines == n_units:
            # The whole session, so that no worker of the killed run goes on in the background.
            os.killpg(process.pid, signal.SIGKILL)
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    return lines


def test_kill_9_loses_at_most_the_units_in_flight(tmp_path, monkeypatch):
    table, out = tmp_path / "table.parquet", tmp_path / "out"
    make_cohort().write(table)
    methods, how = ["random", "ANOVA F"], {"n_jobs": 1, "progress": False}
    whole = accuracy(make_cohort(), tmp_path / "whole", methods=methods, protocol=PROTOCOL, **how)

    assert kill_after(3, table, out, jobs=1) == 3
    with Store(out, read_only=True) as store:
        n_done = len(store.done_keys())
        assert 3 <= n_done <= 4  # what was reported, and perhaps one more on its way out
    assert kill_after(2, table, out, jobs=2) == 2
    with Store(out, read_only=True) as store:
        n_before, n_done = n_done, len(store.done_keys())
    assert n_before + 2 <= n_done < 12

    computed = []
    real = _run.execute
    monkeypatch.setattr(
        _run, "execute", lambda units, *rest: computed.extend(units) or real(units, *rest)
    )
    resumed = accuracy(make_cohort(), out, methods=methods, protocol=PROTOCOL, **how)
    assert len(computed) == 12 - n_done
    assert len(resumed.failures) == 0
    for one, other in zip(comparable(whole), comparable(resumed), strict=True):
        assert_frame_equal(one, other, check_exact=True)
