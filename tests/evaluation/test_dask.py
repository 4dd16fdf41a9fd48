"""A cluster gives what one process gives, by its address or by joblib's own configuration."""

import joblib
import pytest
from pandas.testing import assert_frame_equal

from idfsmec.evaluation import Protocol, accuracy
from tests.clusters import two_workers

from .cohorts import OURS, comparable, make_cohort

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]

PROTOCOL = Protocol(rates=[0.3], n_splits=2, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)


def run(out, **how):
    return accuracy(make_cohort(), out, methods=[OURS, "random"], protocol=PROTOCOL, **how)


def test_a_cluster_gives_what_one_process_gives_to_the_last_bit(tmp_path):
    here = run(tmp_path / "here", n_jobs=1)
    with two_workers() as cluster:
        by_address = run(tmp_path / "address", dask=cluster.scheduler_address)
        with distributed.Client(cluster) as client, joblib.parallel_config("dask", client=client):
            by_backend = run(tmp_path / "backend")
    for there in (by_address, by_backend):
        for one, other in zip(comparable(here), comparable(there), strict=True):
            assert_frame_equal(one, other, check_exact=True)
