"""A real cluster of processes, for tests."""

import os
import subprocess
import sys
import warnings
from contextlib import contextmanager, suppress

import pytest


@contextmanager
def two_workers():
    """Start a scheduler and two workers, each a process."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ports and dashboards of other people's clusters
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
        try:
            yield cluster
        finally:
            # Dask waits five seconds for workers that it has killed, which a busy machine exceeds.
            with suppress(TimeoutError):
                cluster.close()


@contextmanager
def started_by_hand(folder, scheduler_options=(), worker_options=()):
    """Start a scheduler and a worker as the commands do; gives address and the scheduler."""
    distributed = pytest.importorskip("distributed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    file = folder / "scheduler.json"
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
        + ["--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        + list(scheduler_options),
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
        + ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "120"]
        + list(worker_options),
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with distributed.Client(scheduler_file=str(file), timeout="120s") as client:
                client.wait_for_workers(1, timeout=120)
                address = client.scheduler.address
        yield address, scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()
