"""A real cluster of processes: the same bits, and no harm when workers or scheduler are killed."""

import os
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal

from idfsmec.errors import InputError
from idfsmec.evaluation import Method, Protocol, accuracy, run
from idfsmec.evaluation.sanity import AnovaF
from idfsmec.evaluation.store import Store
from idfsmec.evaluation.tables import TableArrays
from tests.clusters import two_workers

from .cohorts import Computed, comparable, make_cohort

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
trustme = pytest.importorskip("trustme")

pytestmark = pytest.mark.slow

PROTOCOL = Protocol(rates=[0.0, 0.3], n_splits=3, ks=[2, 4], n_inner_splits=2)
#: One fit for each unit.
ONE_FIT = PROTOCOL.with_changes(tuning="grid")


class MisbehavesOnce(AnovaF):
    """The first fit of all processes does harm; the others do their work."""

    def __init__(self, *, n_features_to_select=20, flag=None):
        super().__init__(n_features_to_select=n_features_to_select)
        self.flag = flag

    def fit(self, X, y):
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return super().fit(X, y)
        self.misbehave()
        return super().fit(X, y)


class KillsItsWorkerOnce(MisbehavesOnce):
    """Takes its whole process down, like a machine that loses power."""

    def misbehave(self):
        os.kill(os.getpid(), signal.SIGKILL)


class TakesTablesAwayOnce(MisbehavesOnce):
    """Ends somebody else's run on the same tables."""

    def misbehave(self):
        with distributed.worker_client(separate_thread=False) as client:
            (held,) = next(iter(held_by_workers(client).values()))
            client.unregister_worker_plugin(held)


@pytest.fixture(scope="module")
def cluster():
    # Dask's memory manager looks every 2 s for copies to drop; here it is always at it.
    often = {"distributed.scheduler.active-memory-manager.interval": "5ms"}
    with dask.config.set(often), two_workers() as cluster:
        yield cluster


def held_by_workers(client):
    """Names of the tables that each worker holds."""
    return client.run(
        lambda dask_worker: [name for name in dask_worker.plugins if name.startswith("idfsmec")]
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_gives_what_one_process_gives_to_the_last_bit(tmp_path, cluster):
    methods = ["IDFS-MEC", "random"]
    how = {"methods": methods, "protocol": PROTOCOL}
    here = accuracy(make_cohort(), tmp_path / "here", n_jobs=1, **how)
    there = accuracy(make_cohort(), tmp_path / "there", dask=cluster.scheduler_address, **how)
    for one, other in zip(comparable(here), comparable(there), strict=True):
        assert_frame_equal(one, other, check_exact=True)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_worker_killed_in_the_middle_costs_nothing_but_time(tmp_path, cluster):
    def run(name, flag, **how):
        shaky = Method("shaky", KillsItsWorkerOnce(flag=str(flag)))
        return accuracy(
            make_cohort(),
            tmp_path / name,
            methods=["random", shaky],
            protocol=PROTOCOL,
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


class CountedArrays(TableArrays):
    """A table that writes down each process it arrives in."""

    def __reduce__(self):
        parts = {**vars(self)}
        log = parts.pop("log", None) or os.environ["ARRIVALS"]
        return _arrive, (log, parts)


def _arrive(log, parts):
    with Path(log).open("a") as file:
        file.write(f"{os.getpid()}\n")
    arrays = CountedArrays(**parts)
    object.__setattr__(arrays, "log", log)  # workers hand copies on to each other
    return arrays


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_table_is_sent_once_to_each_worker_however_many_units_there_are(
    tmp_path, cluster, monkeypatch
):
    monkeypatch.setenv("ARRIVALS", str(tmp_path / "arrivals"))
    monkeypatch.setattr(run, "TableArrays", CountedArrays)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        workers = client.run(os.getpid)
        results = accuracy(
            {"one": make_cohort(), "two": make_cohort(seed=1)},
            tmp_path / "out",
            methods=["random", "ANOVA F"],
            protocol=PROTOCOL,
            dask=client,
        )
        assert set(map(len, held_by_workers(client).values())) == {0}  # nothing stays behind
    assert len(results.selections) == 2 * 2 * 2 * 3  # tables, methods, rates, folds
    arrivals = [int(line) for line in (tmp_path / "arrivals").read_text().split()]
    assert sorted(arrivals) == sorted(2 * list(workers.values()))  # each table once to each


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_two_runs_may_share_tables_though_one_ends_before_the_other(tmp_path, cluster):
    rude = Method("rude", TakesTablesAwayOnce(flag=str(tmp_path / "taken")))
    how = {"methods": [rude], "protocol": PROTOCOL}
    with distributed.Client(cluster) as client:
        there = accuracy(make_cohort(), tmp_path / "there", dask=client, **how)
        assert set(map(len, held_by_workers(client).values())) == {0}
    assert (tmp_path / "taken").exists()
    assert len(there.failures) == 0
    here = accuracy(make_cohort(), tmp_path / "here", n_jobs=1, **how)
    for one, other in zip(comparable(here), comparable(there), strict=True):
        assert_frame_equal(one, other, check_exact=True)


class KillsAProcess(AnovaF):
    """The second fit takes another process down as soon as the run has kept the first unit.

    The run says so by opening the gate, a named pipe on which the second fit waits.
    """

    def __init__(self, *, n_features_to_select=20, folder=None):
        super().__init__(n_features_to_select=n_features_to_select)
        self.folder = folder

    def fit(self, X, y):
        folder = Path(self.folder)
        if (folder / "victim.pid").exists() and self.claims("first") and self.claims("second"):
            with (folder / "gate").open():
                os.kill(int((folder / "victim.pid").read_text()), signal.SIGKILL)
            (folder / "victim.pid").unlink()
        return super().fit(X, y)

    def claims(self, what):
        """Whether something was claimed before, or nobody else can any more."""
        try:
            os.close(os.open(Path(self.folder) / what, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return what == "first"
        return what == "second"


def open_gate(folder):
    """A listener that opens the gate once, after the first unit was kept."""

    def listen(event):
        if event.done == 1 and event.task == "accuracy" and (folder / "victim.pid").exists():
            (folder / "gate").open("w").close()

    return listen


@contextmanager
def started_by_hand(folder, scheduler_options=(), worker_options=()):
    """A scheduler and a worker as the commands start them; gives address and the scheduler."""
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


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_scheduler_killed_in_the_middle_ends_the_run_and_the_next_one_goes_on(tmp_path):
    os.mkfifo(tmp_path / "gate")
    deadly = Method("deadly", KillsAProcess(folder=str(tmp_path)))
    how = {"methods": [deadly], "protocol": ONE_FIT}
    with started_by_hand(tmp_path) as (address, scheduler):
        (tmp_path / "victim.pid").write_text(str(scheduler.pid))
        with pytest.raises(RuntimeError, match=r"scheduler is gone\. What is finished is kept"):
            accuracy(
                make_cohort(),
                tmp_path / "out",
                dask=address,
                progress=open_gate(tmp_path),
                **how,
            )
        assert scheduler.wait(60) == -signal.SIGKILL
    with Store(tmp_path / "out", read_only=True) as store:
        assert len(store.done_keys()) == 1
        assert store.failures() == []

    computed = Computed()
    resumed = accuracy(make_cohort(), tmp_path / "out", n_jobs=1, progress=computed, **how)
    assert len(computed.units()) == 6 - 1
    whole = accuracy(make_cohort(), tmp_path / "whole", n_jobs=1, **how)
    for one, other in zip(comparable(whole), comparable(resumed), strict=True):
        assert_frame_equal(one, other, check_exact=True)


RUN_AND_BE_KILLED = """
import os, sys
from pathlib import Path
from idfsmec.evaluation import Method, accuracy
from tests.evaluation.cohorts import make_cohort
from tests.evaluation.test_dask import ONE_FIT, KillsAProcess, open_gate

folder, address = Path(sys.argv[1]), sys.argv[2]
(folder / "victim.pid").write_text(str(os.getpid()))
deadly = Method("deadly", KillsAProcess(folder=str(folder)))
accuracy(make_cohort(), folder / "out", methods=[deadly], protocol=ONE_FIT, dask=address,
         progress=open_gate(folder))
"""


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_what_a_killed_run_leaves_on_the_workers_the_next_one_uses_and_removes(tmp_path, cluster):
    script = tmp_path / "run.py"
    script.write_text(RUN_AND_BE_KILLED)
    os.mkfifo(tmp_path / "gate")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    address = cluster.scheduler_address
    killed = subprocess.run(
        [sys.executable, str(script), str(tmp_path), address], env=environment, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL
    deadly = Method("deadly", KillsAProcess(folder=str(tmp_path)))
    how = {"methods": [deadly], "protocol": ONE_FIT}
    with distributed.Client(cluster) as client:
        (left,) = set(map(tuple, held_by_workers(client).values()))
        assert len(left) == 1
        resumed = accuracy(make_cohort(), tmp_path / "out", dask=client, **how)
        assert set(map(len, held_by_workers(client).values())) == {0}
    whole = accuracy(make_cohort(), tmp_path / "whole", n_jobs=1, **how)
    for one, other in zip(comparable(whole), comparable(resumed), strict=True):
        assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize("lacking", ["scheduler", "worker"])
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_that_lacks_the_package_is_refused_with_advice(tmp_path, lacking):
    hide = tmp_path / "hide.py"
    hide.write_text("import sys\nsys.modules['idfsmec'] = None\n")
    options = {f"{lacking}_options": ["--preload", str(hide)]}
    with (
        started_by_hand(tmp_path, **options) as (address, _),
        pytest.raises(InputError, match=r"cannot load .*idfsmec.*install idfsmec"),
    ):
        accuracy(
            make_cohort(),
            tmp_path / "out",
            methods=["random"],
            protocol=PROTOCOL,
            dask=address,
        )


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
        )


@pytest.fixture
def certificates(tmp_path):
    """Options for scheduler and worker, and Dask's settings, signed by an authority of ours."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    files = {name: str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(files["ca"])
    issued.private_key_pem.write_to_path(files["key"])
    for blob in issued.cert_chain_pems:
        blob.write_to_path(files["cert"], append=True)
    options = ["--tls-ca-file", files["ca"], "--tls-cert", files["cert"]]
    options += ["--tls-key", files["key"], "--protocol", "tls"]
    own = {"cert": files["cert"], "key": files["key"]}
    known = {"ca-file": files["ca"], "client": own, "scheduler": own, "worker": own}
    return options, {f"distributed.comm.tls.{name}": value for name, value in known.items()}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_behind_certificates_computes_the_same_and_asks_for_them(tmp_path, certificates):
    options, settings = certificates
    how = {"methods": ["ANOVA F"], "protocol": ONE_FIT}
    with dask.config.set(settings), started_by_hand(tmp_path, options, options) as (address, _):
        assert address.startswith("tls://")
        there = accuracy(make_cohort(), tmp_path / "there", dask=address, **how)
        with (
            dask.config.set({"distributed.comm.tls.client": {"cert": None, "key": None}}),
            pytest.raises(InputError, match=r"needs certificates: set DASK_.*CLIENT__CERT"),
        ):
            accuracy(make_cohort(), tmp_path / "refused", dask=address, **how)
        with (
            dask.config.set({"distributed.comm.tls.client": {"cert": "no.pem", "key": "no.pem"}}),
            pytest.raises(InputError, match=r"no\.pem: there is no such file"),
        ):
            accuracy(make_cohort(), tmp_path / "refused", dask=address, **how)
        plain = address.replace("tls://", "tcp://")
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            accuracy(make_cohort(), tmp_path / "refused", dask=plain, **how)
    here = accuracy(make_cohort(), tmp_path / "here", n_jobs=1, **how)
    for one, other in zip(comparable(here), comparable(there), strict=True):
        assert_frame_equal(one, other, check_exact=True)
