"""A real cluster of processes, for tests."""

import warnings
from contextlib import contextmanager

import pytest


@contextmanager
def two_workers():
    """Start a scheduler and two workers, each a process."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ports and dashboards of other people's clusters
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            yield cluster
