"""A run that is killed outright goes on where it stopped, and ends as if nothing had been."""

import os
import signal
import subprocess
import sys

import pytest
from pandas.testing import assert_frame_equal

from idfsmec.evaluation import Protocol, accuracy
from idfsmec.evaluation.store import Store

from .cohorts import Computed, comparable, make_cohort

SCRIPT = """
import sys
from idfsmec.evaluation import accuracy
from idfsmec.table import FeatureTable

def tell(event):
    if event.item is not None:
        print("done", flush=True)
        sys.stdin.readline()  # go on when told, so that the kill is never late

table, out, jobs = sys.argv[1:]
protocol = dict(rates=[0.0, 0.3], n_splits=3, ks=[2, 4])
accuracy({"table": FeatureTable.read(table)}, out, methods=["random", "ANOVA F"],
         protocol=protocol, n_jobs=int(jobs), progress=tell)
"""
PROTOCOL = Protocol(rates=[0.0, 0.3], n_splits=3, ks=[2, 4])


def kill_after(n_units, table, out, jobs):
    """Run in a process of its own and kill it after some units; say how many it reported."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(table), str(out), str(jobs)],
        stdin=subprocess.PIPE,
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
        process.stdin.write(b"\n")
        process.stdin.flush()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    return lines


@pytest.mark.long
def test_kill_9_loses_at_most_the_units_in_flight(tmp_path):
    table, out = tmp_path / "table.parquet", tmp_path / "out"
    make_cohort().write(table)
    methods, how = ["random", "ANOVA F"], {"n_jobs": 1}
    whole = accuracy(make_cohort(), tmp_path / "whole", methods=methods, protocol=PROTOCOL, **how)

    assert kill_after(3, table, out, jobs=1) == 3
    with Store(out, read_only=True) as store:
        assert len(store.done_keys()) == 3  # all that was reported
    assert kill_after(2, table, out, jobs=2) == 2
    with Store(out, read_only=True) as store:
        assert len(store.done_keys()) == 5

    computed = Computed()
    resumed = accuracy(
        make_cohort(), out, methods=methods, protocol=PROTOCOL, progress=computed, **how
    )
    assert len(computed.tasks()) == 12 - 5
    assert len(resumed.failures) == 0
    for one, other in zip(comparable(whole), comparable(resumed), strict=True):
        assert_frame_equal(one, other, check_exact=True)
