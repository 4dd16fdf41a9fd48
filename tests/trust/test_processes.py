"""Signals, worker processes and the memory they share: nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from idfsmec._workers import run_in_processes, shared_folder
from idfsmec.cli.signals import Stopped, stopping_on_signals
from idfsmec.evaluation.store import Store

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
#: More units than anybody waits for.
LONG = ["--methods", "ANOVA F", "--n-splits", "12", "--seeds", "40", "--jobs", "2"]


def children(parent):
    """Numbers of the processes that a process has started, and of those that they have."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found += [int(status.parent.name), *children(int(status.parent.name))]
    return found


def wait_until(is_so, seconds=60):
    """Wait for what must come; how soon is not asked."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def state(process):
    """The letter that Linux has for what a process does: R runs, S sleeps, Z has ended."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def command_of(process):
    return Path(f"/proc/{process}/cmdline").read_bytes()


def alive(process):
    try:
        return state(process) != "Z"
    except OSError:
        return False


def hear_signals():
    """What is ignored here, after ``nohup`` or behind ``&``, a child would ignore too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def running(table, out, *, preexec=None):
    """A long benchmark in processes that has finished at least one unit."""
    command = [sys.executable, "-m", "idfsmec", "benchmark", str(table), "--out", str(out), *LONG]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=preexec or hear_signals,
    ) as process:
        try:
            assert "to do" in process.stderr.readline()
            wait_until(lambda: n_done(out) or process.poll() is not None)
            yield process
        finally:
            process.kill()


def n_done(out):
    with Store(out, read_only=True) as store:
        return len(store.done_keys())


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_run_like_ctrl_c_and_its_workers_with_it(small_table, tmp_path, name):
    number = getattr(signal, name)
    with running(small_table, tmp_path / "out") as process:
        workers = children(process.pid)
        assert workers
        process.send_signal(number)
        rest = process.communicate(timeout=60)[1]  # ends when all who hold the pipe have
    assert process.returncode == 128 + number
    assert f"stopped by {name}; what is finished is kept" in rest
    assert "Traceback" not in rest
    wait_until(lambda: not any(map(alive, workers)))


@pytest.mark.long
def test_ctrl_c_three_times_ends_as_cleanly_as_once(small_table, tmp_path):
    with running(small_table, tmp_path / "out") as process:
        for _ in range(3):
            process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130, rest
    assert rest.count("stopped; what is finished is kept") == 1
    assert "Traceback" not in rest


@pytest.mark.long
def test_a_run_that_shall_survive_the_terminal_does(small_table, tmp_path):
    ignoring = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    with running(small_table, tmp_path / "out", preexec=ignoring) as process:
        before = n_done(tmp_path / "out")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: n_done(tmp_path / "out") > before)
        assert process.poll() is None


@pytest.mark.long
def test_workers_end_soon_after_their_parent_was_killed(small_table, tmp_path):
    with running(small_table, tmp_path / "out") as process:
        workers = children(process.pid)
        assert workers
        process.kill()
        wait_until(lambda: not any(map(alive, workers)))


#: A lock that the main thread waits for in C: Python does not hear signals meanwhile.
STUCK = """
import ctypes
from idfsmec.cli.signals import stopping_on_signals
from idfsmec.cli._console import print_plainly
c, lock = ctypes.CDLL(None), ctypes.create_string_buffer(256)
c.pthread_mutex_init(lock, None)
with stopping_on_signals(print_plainly):
    c.pthread_mutex_lock(lock)
    print("stuck", flush=True)
    c.pthread_mutex_lock(lock)
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_also_a_process_that_does_not_hear_it(name):
    number = getattr(signal, name)
    with subprocess.Popen(
        [sys.executable, "-c", STUCK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout.readline() == "stuck\n"
            wait_until(lambda: state(process.pid) == "S")  # it waits, in C
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert said == ("error: stopped\n" if name == "SIGINT" else f"error: stopped by {name}\n")


def test_listening_for_signals_ends_with_the_command():
    before = threading.active_count(), signal.set_wakeup_fd(-1)
    with stopping_on_signals():
        pass
    assert (threading.active_count(), signal.set_wakeup_fd(-1)) == before
    with pytest.raises(Stopped, match="stopped by SIGTERM"), stopping_on_signals():
        signal.raise_signal(signal.SIGTERM)
    wait_until(lambda: threading.active_count() == before[0])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


SHORT = """
import resource, sys
limit = int(sys.argv.pop(1)) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from idfsmec.cli import app
app()
"""


@pytest.mark.long
@pytest.mark.parametrize("megabytes", [450, 586])
def test_a_command_that_runs_out_of_memory_says_so_and_ends(small_table, megabytes):
    command = [sys.executable, "-c", SHORT, str(megabytes), "select", str(small_table), "-o"]
    ended = subprocess.run(
        [*command, str(small_table.with_name("ranking.csv"))],
        capture_output=True,
        text=True,
        env={name: value for name, value in ENVIRONMENT.items() if name != "OMP_NUM_THREADS"},
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr
    assert f"{megabytes} MiB of memory (ulimit -v) are too few" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


FEW_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
from idfsmec.cli import app
app()
"""


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 3])
def test_a_command_that_may_open_few_files_works_or_says_so(study, tmp_path, jobs):
    out = tmp_path / "table.parquet"
    command = [sys.executable, "-c", FEW_FILES, "features", str(study), "-o", str(out)]
    ended = subprocess.run(
        [*command, "--jobs", str(jobs)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    assert "Traceback" not in ended.stderr
    assert out.exists() == (ended.returncode == 0)
    if jobs == 1:
        assert ended.returncode == 0, ended.stderr
    elif ended.returncode:
        assert ended.stderr.splitlines()[-1].startswith("error: too many open files")


def test_memory_of_a_killed_run_is_swept_and_that_of_a_living_one_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    program = (
        "import os, signal\n"
        "from idfsmec._workers import shared_folder\n"
        "with shared_folder() as folder:\n"
        "    (folder / 'values').write_text('of a patient')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        env=ENVIRONMENT | {"JOBLIB_TEMP_FOLDER": str(tmp_path)},
        check=False,
    )
    (left,) = tmp_path.iterdir()
    assert (left / "values").exists()
    with shared_folder() as fresh:  # too young: its owner may be about to lock it
        assert left.exists()
    os.utime(left, (0, 0))
    with shared_folder() as folder:
        os.utime(folder, (0, 0))
        with shared_folder() as other:
            assert sorted(tmp_path.iterdir()) == sorted([folder, other])
        assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert not fresh.exists()
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal
from pathlib import Path
from idfsmec._workers import run_in_processes
outcomes = run_in_processes(divmod, [(number, 3) for number in range(99)], 2)
next(outcomes)
print(*Path("/dev/shm").glob(f"*-{os.getpid()}-*"), flush=True)
os.killpg(0, signal.SIGKILL)
"""


@pytest.mark.long
def test_what_workers_of_a_killed_run_left_in_memory_is_swept_and_nothing_else():
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    left = [path for path in map(Path, done.stdout.split()) if path.exists()]
    (folder,) = (one for one in left if one.is_dir())  # ours: joblib has none beside it
    semaphores = [one for one in left if one.name.startswith("sem.loky-")]
    foreign = semaphores[0].with_name(f"{semaphores[0].name}-of-somebody-else")
    foreign.write_bytes(bytes(32))
    try:
        os.utime(folder, (0, 0))
        with shared_folder():
            assert [one for one in left if one.exists()] == []
            assert foreign.exists()
    finally:
        foreign.unlink()


def test_workers_go_with_their_work_where_they_are_told_to():
    gone = set(run_in_processes(os.getpgid, [(0,)] * 2, 2, stay=False))
    assert len(gone) == 1  # they were there
    workers = [one for one in children(os.getpid()) if b"popen_loky" in command_of(one)]
    assert workers == []


def test_processes_give_the_results_of_one_and_leave_no_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    tasks = [(number, 3) for number in range(20)]
    alone = list(run_in_processes(divmod, tasks, 1))
    assert list(run_in_processes(divmod, tasks, 2, ordered=True)) == alone
    assert sorted(run_in_processes(divmod, tasks, 2)) == alone
    assert list(tmp_path.iterdir()) == []
