"""With --dask commands work on the cluster, and give what one process gives."""

import joblib
import numpy as np
import pandas as pd
import pytest

from idfsmec import _parallel, cli
from idfsmec.errors import InputError, WorkerError
from idfsmec.table import FeatureTable
from tests.clusters import started_by_hand, two_workers
from tests.evaluation.cohorts import comparable, make_cohort

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
SMALL = {"methods": "IDFS-MEC,random", "folds": 2, "k": "2,4", "rates": "0.3", "resamples": 4}


@pytest.fixture(scope="module")
def address():
    with two_workers() as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def table(tmp_path):
    return make_cohort().write(tmp_path / "clinic.parquet")


@pytest.fixture
def elsewhere(monkeypatch):
    """Count the tasks that are sent to a cluster, and refuse to start processes here."""
    on_dask, sent = _parallel._on_dask, []

    def counted(function, tasks, client):
        for outcome in on_dask(function, tasks, client):
            sent.append(outcome[0])
            yield outcome

    def refuse(*args):
        raise AssertionError("processes here")

    monkeypatch.setattr(_parallel, "_on_dask", counted)
    monkeypatch.setattr(_parallel, "_in_processes", refuse)
    return sent


def test_select_ranks_halves_and_folders_on_the_cluster(address, table, tmp_path, elsewhere):
    folder = tmp_path / "clinic"
    folder.mkdir()
    whole = FeatureTable.read(table)
    for number, part in enumerate(np.array_split(np.arange(len(whole)), 2)):
        whole.take(part).write(folder / f"{number}.parquet")
    options = ({"resamples": 4}, {"tune": True, "k": 2}, {})
    for source, more in zip((table, table, folder), options, strict=True):
        here = cli.select(source, tmp_path / "here.csv", jobs=1, force=True, **more)
        assert elsewhere == []
        there = cli.select(source, tmp_path / "there.csv", dask=address, force=True, **more)
        pd.testing.assert_frame_equal(there, here, check_exact=True)
        assert elsewhere
        elsewhere.clear()


@pytest.mark.long
def test_benchmark_with_stability_and_audit_is_done_on_the_cluster(
    address, table, tmp_path, elsewhere
):
    there = cli.benchmark(table, tmp_path / "there", dask=address, **SMALL)
    n_there = len(elsewhere)
    here = cli.benchmark(table, tmp_path / "here", jobs=1, **SMALL)
    assert len(elsewhere) == n_there > 5
    for one, other in zip(comparable(here), comparable(there), strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert there.resampling == here.resampling
    assert there.audit_parts.keys() == here.audit_parts.keys()
    assert there.environment["versions"] == here.environment["versions"]


@pytest.mark.long
def test_train_and_validate_work_on_the_cluster(address, table, tmp_path, elsewhere):
    model = cli.train(table, tmp_path / "m.skops", dask=address, folds=2, repeats=1)
    assert elsewhere
    elsewhere.clear()
    again = cli.train(table, tmp_path / "here.skops", jobs=1, folds=2, repeats=1)
    assert elsewhere == []
    assert model.performance == again.performance
    other = make_cohort(seed=1).write(tmp_path / "other.parquet")
    cli.validate(tmp_path / "m.skops", other, tmp_path / "v", dask=address, include_training=True)
    assert elsewhere  # the audit of the other table


def test_a_wrong_address_is_told_and_leaves_no_folder(table, tmp_path, monkeypatch):
    monkeypatch.setattr(_parallel, "_GREETING", 0.2)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        cli.benchmark(table, tmp_path / "out", dask="tcp://127.0.0.1:9", **SMALL)
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_without_workers_is_told_and_ends_the_run(table, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(_parallel, "_PATIENCE", 0.2)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with pytest.raises(WorkerError, match=r"no worker has joined tcp://.* within 0 s"):
            cli.audit(table, tmp_path / "out", dask=address)
    assert f"waiting for workers of {address}; this ends if none joins" in caplog.text
    assert not (tmp_path / "out").exists()


def double(number):
    return 2 * number


@pytest.mark.long
def test_a_worker_of_another_version_that_joins_late_is_refused(tmp_path, monkeypatch):
    other = tmp_path / "other.py"
    other.write_text("import importlib.metadata as m\nm.version = lambda package: '9.9'\n")
    monkeypatch.setattr(_parallel, "_check_workers", lambda client: None)  # it was not there
    with (
        started_by_hand(tmp_path, worker_options=["--preload", str(other)]) as (address, _),
        pytest.raises(InputError, match=r"a worker has idfsmec 9\.9"),
        _parallel.on_cluster(address),
    ):
        list(_parallel.run_tasks(double, range(4)))


def test_a_backend_that_gives_results_together_works():
    class Together(joblib._parallel_backends.ThreadingBackend):
        supports_return_generator = False

    joblib.register_parallel_backend("together", Together)
    with joblib.parallel_config("together", n_jobs=2):
        outcomes = sorted(_parallel.run_tasks(double, range(5), n_jobs=2))
    assert outcomes == [(i, 2 * i) for i in range(5)]
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        assert sorted(_parallel.run_tasks(double, range(5), n_jobs=2)) == outcomes
