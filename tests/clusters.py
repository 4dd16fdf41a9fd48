"""A real cluster of processes, for tests."""

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
