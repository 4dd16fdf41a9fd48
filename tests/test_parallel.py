"""Work in processes and on clusters: the same results, and nothing is lost or left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

from idfsmec import _parallel
from idfsmec._parallel import count_jobs
from idfsmec.audit import audit
from idfsmec.errors import InputError, WorkerError
from idfsmec.evaluation import accuracy, train_model
from idfsmec.features import extract_table, extract_to_file
from idfsmec.features.extract import compute_features
from idfsmec.paper import reproduce
from idfsmec.recordings import simulate_cohort
from tests.clusters import started_by_hand

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
ON_CLUSTER = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def recordings():
    return simulate_cohort(4, 3, duration=12, detached=0, random_state=0).recordings


@pytest.fixture(scope="module")
def expected(recordings):
    return extract_table(recordings).table


def with_load(recordings, load, *args):
    """Have the second recording be loaded in another way."""
    changed = replace(recordings[1], load=partial(load, recordings[1].load, *args))
    return [recordings[0], changed, *recordings[2:]]


def kill(load, flag=None):
    """Take the whole process down, each time or only the first time of all."""
    if flag is None:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return load()


def look_around(load, path):
    """Write down what a worker is like."""
    blas = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    nested = joblib.Parallel(n_jobs=2)(joblib.delayed(os.getpid)() for _ in range(2))
    facts = {
        "process": os.getpid(),
        "blas": blas,
        "nested": nested,
        "ctrl_c": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
    }
    Path(path).write_text(json.dumps(facts))
    return load()


@pytest.mark.parametrize("jobs", [0, True, 1.5, "2"])
def test_what_is_no_number_of_jobs_is_refused(recordings, jobs):
    with pytest.raises(InputError, match=r"n_jobs=.*: give 1 or more, or -1"):
        extract_table(recordings, n_jobs=jobs)


@pytest.mark.parametrize("jobs", [-1, -50])
def test_jobs_may_be_counted_from_all_cores(recordings, expected, jobs):
    assert extract_table(recordings[:1], n_jobs=jobs).table.equals(expected.take([0]))


def test_without_a_number_there_is_one_job_unless_joblib_is_told_otherwise(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "4")
    assert count_jobs(None) == joblib.effective_n_jobs(None) == 1
    assert count_jobs(-1) == joblib.effective_n_jobs(-1)
    with joblib.parallel_config("threading", n_jobs=3):
        assert count_jobs(None) == 3
        assert count_jobs(2) == 2
    functions = [extract_table, extract_to_file, accuracy, audit, train_model, reproduce]
    assert {signature(f).parameters["n_jobs"].default for f in functions} == {None}


@pytest.mark.parametrize("threads", ["", "0", "many", "3"])
def test_features_do_not_depend_on_the_number_of_threads(monkeypatch, threads):
    epochs = np.random.default_rng(0).normal(size=(7, 11, 1000))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = compute_features(epochs, 250.0)[0]
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert_array_equal(compute_features(epochs, 250.0)[0], alone)


@pytest.mark.slow
def test_a_worker_has_one_thread_starts_no_workers_and_leaves_ctrl_c_to_its_parent(
    recordings, expected, tmp_path
):
    changed = with_load(recordings, look_around, str(tmp_path / "facts"))
    assert extract_table(changed, n_jobs=2).table.equals(expected)
    facts = json.loads((tmp_path / "facts").read_text())
    assert facts["process"] != os.getpid()
    assert set(facts["nested"]) == {facts["process"]}
    assert set(facts["blas"]) == {1}
    assert facts["ctrl_c"]


@pytest.mark.long
def test_what_a_killed_worker_leaves_is_done_again(recordings, expected, tmp_path):
    changed = with_load(recordings, kill, str(tmp_path / "deadly"))
    assert extract_table(changed, n_jobs=2).table.equals(expected)
    assert (tmp_path / "deadly").exists()


@pytest.mark.long
def test_a_task_that_ends_every_worker_is_named(recordings):
    changed = with_load(recordings, kill)
    with pytest.raises(WorkerError, match=r"task 2, simulated subject sim002: ended 3 worker"):
        extract_table(changed, n_jobs=2)


def test_another_backend_of_joblib_may_be_chosen(recordings, expected):
    with joblib.parallel_config("threading"):
        assert extract_table(recordings, n_jobs=2).table.equals(expected)


WAITING = """
import os, sys, time
from functools import partial
from pathlib import Path
import numpy as np
from idfsmec.features import extract_table
from idfsmec.recordings import Recording

def wait(values, folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

folder = sys.argv[1]
values = np.ones(10**6)
recordings = [Recording(f"s{n}", "HC", partial(wait, values, folder), f"file {n}") for n in "12"]
extract_table(recordings, n_jobs=2)
"""

AGAIN = """
from idfsmec.features import extract_table
from idfsmec.paper import reproduce
from idfsmec.recordings import simulate_cohort
extract_table(simulate_cohort(2, 3, duration=12, detached=0).recordings, n_jobs=2)
"""


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(is_so, seconds=90):
    """Wait for what must come; how soon is not asked."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def values_in(folder):
    """Files but the one that holds the number of the process."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "process"]


@pytest.mark.long
@pytest.mark.parametrize("end", ["parent", "everything"])
def test_nothing_of_a_killed_run_stays(recordings, tmp_path, end):
    marks, shared = tmp_path / "workers", tmp_path / "shared"
    marks.mkdir()
    shared.mkdir()
    environment = ENVIRONMENT | {"JOBLIB_TEMP_FOLDER": str(shared)}
    with subprocess.Popen(
        [sys.executable, "-c", WAITING, str(marks)],
        env=environment,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as run:
        wait_until(lambda: len(list(marks.iterdir())) == 2 or run.poll() is not None)
        assert values_in(shared)
        [folder] = shared.iterdir()
        assert oct(folder.stat().st_mode & 0o777) == "0o700"
        subprocess.run([sys.executable, "-c", AGAIN], env=environment, check=True)
        assert values_in(shared), "another run removed what a living one uses"
        if end == "everything":
            os.killpg(run.pid, signal.SIGKILL)
        else:
            run.kill()
        run.wait(60)
    wait_until(lambda: not any(is_alive(int(mark.name)) for mark in marks.iterdir()))
    if end == "everything":  # the next run removes what nobody could
        assert values_in(shared)
        subprocess.run([sys.executable, "-c", AGAIN], env=environment, check=True)
        assert list(shared.iterdir()) == []
    wait_until(lambda: not values_in(shared))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # nannies that start workers again live in this process
def test_a_task_that_ends_every_worker_of_a_cluster_is_named(recordings, cluster):
    changed = with_load(recordings, kill)
    with pytest.raises(WorkerError, match=r"lost a task .*numbers (1, )?2\b.*more memory"):
        extract_table(changed, dask=cluster.scheduler_address)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(b"", "silent for 0 s"), (b"HTTP/1.1 400 Bad Request", "what answers is no scheduler")],
)
def test_an_address_where_no_scheduler_answers_is_refused(recordings, monkeypatch, answer, reason):
    pytest.importorskip("distributed")
    monkeypatch.setattr(_parallel, "_GREETING", 0.4 if not answer else 60.0)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        connected = pool.submit(server.accept)
        connected.add_done_callback(lambda done: done.result()[0].sendall(answer))
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=rf"scheduler answers at .{address}. \({reason}"):
            extract_table(recordings, dask=address)
        connected.result()[0].close()


def test_a_worker_that_is_silent_is_named_once_and_ends_the_run(monkeypatch, caplog):
    workers = {"tcp://a:1": {"last_seen": 7.0}, "tcp://b:1": {"last_seen": 7.0}}
    client = SimpleNamespace(
        scheduler_info=lambda: {"workers": workers}, scheduler=SimpleNamespace(address="tcp://s:1")
    )
    monkeypatch.setattr(_parallel, "_SILENCE", 0.0)
    signs = {}
    for sent in (1.0, 2.0, 3.0):
        workers["tcp://b:1"]["last_seen"] = sent
        _parallel._watch_workers(client, signs)
    assert caplog.text.count("the worker tcp://a:1 has not answered for 0 s") == 1
    assert "tcp://b:1" not in caplog.text
    monkeypatch.setattr(_parallel, "_PATIENCE", 0.0)
    with pytest.raises(WorkerError, match=r"no worker has answered tcp://s:1 within 0 s\."):
        _parallel._watch_workers(client, signs)


def test_without_dask_the_message_says_what_to_install(recordings, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r'needs the package "distributed".*idfsmec\[dask\]'):
        extract_table(recordings, dask="tcp://nowhere:1")


def kill_scheduler(load, process):
    os.kill(process, signal.SIGKILL)
    time.sleep(60)


@pytest.mark.long
@ON_CLUSTER
def test_a_scheduler_that_is_killed_ends_the_run_in_one_line(recordings, tmp_path):
    with started_by_hand(tmp_path) as (address, scheduler):
        changed = with_load(recordings, kill_scheduler, scheduler.pid)
        with pytest.raises(WorkerError, match=r"scheduler is gone\. Finished tasks are kept"):
            extract_table(changed, dask=address)


@pytest.mark.long
@ON_CLUSTER
@pytest.mark.parametrize("lacking", ["scheduler", "worker"])
def test_a_cluster_that_lacks_the_package_is_refused_with_advice(recordings, tmp_path, lacking):
    hide = tmp_path / "hide.py"
    hide.write_text("import sys\nsys.modules['idfsmec'] = None\n")
    options = {f"{lacking}_options": ["--preload", str(hide)]}
    with (
        started_by_hand(tmp_path, **options) as (address, _),
        pytest.raises(InputError, match=r"cannot load .*idfsmec.*install idfsmec"),
    ):
        extract_table(recordings, dask=address)


@pytest.mark.long
@ON_CLUSTER
def test_a_worker_with_another_version_is_refused(recordings, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("import importlib.metadata as m\nm.version = lambda package: '9.9'\n")
    with (
        started_by_hand(tmp_path, worker_options=["--preload", str(other)]) as (address, _),
        pytest.raises(InputError, match=r"a worker has idfsmec 9\.9"),
    ):
        extract_table(recordings, dask=address)


@pytest.fixture
def certificates(tmp_path):
    """Options for scheduler and worker, and Dask's settings, signed by an authority of ours."""
    trustme = pytest.importorskip("trustme")
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


@pytest.mark.long
@ON_CLUSTER
def test_a_cluster_behind_certificates_computes_the_same_and_asks_for_them(
    recordings, expected, tmp_path, certificates
):
    dask = pytest.importorskip("dask")
    options, settings = certificates
    with dask.config.set(settings), started_by_hand(tmp_path, options, options) as (address, _):
        assert address.startswith("tls://")
        assert extract_table(recordings, dask=address).table.equals(expected)
        with (
            dask.config.set({"distributed.comm.tls.client": {"cert": None, "key": None}}),
            pytest.raises(InputError, match=r"needs certificates: set DASK_.*CLIENT__CERT"),
        ):
            extract_table(recordings, dask=address)
        with (
            dask.config.set({"distributed.comm.tls.client": {"cert": "no.pem", "key": "no.pem"}}),
            pytest.raises(InputError, match=r"no\.pem: there is no such file"),
        ):
            extract_table(recordings, dask=address)


MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps semaphores
WORK = """
import os, sys, time
import numpy as np
from functools import partial
from idfsmec._parallel import run_tasks

def work(task, values):
    return values.sum() + task

if __name__ == "__main__":
    done = list(run_tasks(partial(work, values=np.ones(100_000)), range(4), n_jobs=2))
    print(len(done), os.getpid(), flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not MEMORY.is_dir(), reason="needs semaphores that are files")
def test_what_a_killed_group_of_processes_leaves_is_removed_by_the_next_run(tmp_path):
    program = tmp_path / "work.py"
    program.write_text(WORK)
    command = [sys.executable, str(program)]
    killed = subprocess.Popen(
        [*command, "600"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with killed:
        number = killed.stdout.readline().split()[1]
        os.killpg(killed.pid, signal.SIGKILL)
    pattern = f"sem.loky-{number}-*"
    assert list(MEMORY.glob(pattern))
    subprocess.run([*command, "0"], env=ENVIRONMENT, check=True, capture_output=True)
    assert not list(MEMORY.glob(pattern))
