"""A real cluster of processes: the same bits, and no harm when a worker is killed."""

import os
import signal
import warnings

import pytest
from pandas.testing import assert_frame_equal

from idfsmec.errors import InputError
from idfsmec.evaluation import Contestant, Protocol, accuracy
from idfsmec.evaluation._sanity import AnovaF

from .cohorts import comparable, make_cohort

distributed = pytest.importorskip("distributed")

PROTOCOL = Protocol(rates=[0.0, 0.3], n_splits=3, ks=[2, 4])


class KillsItsWorkerOnce(AnovaF):
    """The first fit takes its whole process down, like a machine that loses power."""

    def __init__(self, *, n_features_to_select=None, flag=None):
        super().__init__(n_features_to_select=n_features_to_select)
        self.flag = flag

    def fit(self, X, y):
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return super().fit(X, y)
        os.kill(os.getpid(), signal.SIGKILL)
        return self


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ports and dashboards of other people's clusters
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            yield cluster


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_gives_what_one_process_gives_to_the_last_bit(tmp_path, cluster):
    methods = ["IDFS-MEC", "random"]
    how = {"methods": methods, "protocol": PROTOCOL, "progress": False}
    here = accuracy(make_cohort(), tmp_path / "here", n_jobs=1, **how)
    there = accuracy(make_cohort(), tmp_path / "there", dask=cluster.scheduler_address, **how)
    for one, other in zip(comparable(here), comparable(there), strict=True):
        assert_frame_equal(one, other, check_exact=True)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_worker_killed_in_the_middle_costs_nothing_but_time(tmp_path, cluster):
    def run(name, flag, **how):
        shaky = Contestant("shaky", KillsItsWorkerOnce(flag=str(flag)))
        return accuracy(
            make_cohort(),
            tmp_path / name,
            methods=["random", shaky],
            protocol=PROTOCOL,
            progress=False,
            **how,
        )

    (tmp_path / "calm").touch()
    calm = run("here", tmp_path / "calm", n_jobs=1)
    with distributed.Client(cluster) as client:
        workers = set(client.scheduler_info()["workers"])
        killed = run("there", tmp_path / "deadly", dask=client)
        assert (tmp_path / "deadly").exists()
        assert set(client.scheduler_info()["workers"]) != workers, "no worker was killed"
    assert len(killed.failures) == 0
    for one, other in zip(comparable(calm), comparable(killed), strict=True):
        assert_frame_equal(one, other, check_exact=True)


def test_an_address_where_nobody_answers_is_refused_with_advice(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr(distributed, "Client", type("Client", (), {"__init__": refuse}))
    with pytest.raises(InputError, match="no Dask scheduler answers at 'tcp://nowhere:1'"):
        accuracy(
            make_cohort(),
            tmp_path,
            methods=["random"],
            protocol=PROTOCOL,
            dask="tcp://nowhere:1",
            progress=False,
        )
