"""Signals and limits: a command ends, says so, and leaves no processes behind."""

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

from idfsmec.cli.app import Stopped, stopping_on_signals
from idfsmec.evaluation.store import Store

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
#: More units than anybody waits for.
LONG = ["--methods", "ANOVA F", "--folds", "12", "--repeats", "40", "--jobs", "2"]


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
    assert f"stopped by {name}; finished tasks are kept" in rest
    assert "Traceback" not in rest
    wait_until(lambda: not any(map(alive, workers)))


@pytest.mark.long
def test_ctrl_c_three_times_ends_as_cleanly_as_once(small_table, tmp_path):
    with running(small_table, tmp_path / "out") as process:
        for _ in range(3):
            process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130, rest
    assert rest.count("stopped; finished tasks are kept") == 1
    assert "Traceback" not in rest


@pytest.mark.long
def test_a_run_that_shall_survive_the_terminal_does(small_table, tmp_path):
    ignoring = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    with running(small_table, tmp_path / "out", preexec=ignoring) as process:
        before = n_done(tmp_path / "out")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: n_done(tmp_path / "out") > before)
        assert process.poll() is None


#: A lock that the main thread waits for in C: Python does not hear signals meanwhile.
STUCK = """
import ctypes
from idfsmec.cli.app import stopping_on_signals
c, lock = ctypes.CDLL(None), ctypes.create_string_buffer(256)
c.pthread_mutex_init(lock, None)
with stopping_on_signals():
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


def run_benchmark(setup, table, out):
    """Run a benchmark with two processes after some lines of Python."""
    code = f"{setup}\nfrom idfsmec.cli import app\napp()"
    options = ["--methods", "ANOVA F", "--rates", "0", "--folds", "2", "--resamples", "0"]
    command = [sys.executable, "-c", code, "benchmark", str(table), "--out", str(out), *options]
    more = ["--experiment", "accuracy", "--jobs", "2"]
    return subprocess.run(
        [*command, *more], capture_output=True, text=True, env=ENVIRONMENT, timeout=120
    )


@pytest.mark.long
@pytest.mark.parametrize("n_files", [20, 24, 28, 32])
def test_two_processes_that_may_open_few_files_work_or_end_in_one_line(
    small_table, tmp_path, n_files
):
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({n_files},) * 2)"
    ended = run_benchmark(limit, small_table, tmp_path / "out")
    assert "Traceback" not in ended.stderr
    if ended.returncode:
        assert ended.stderr.splitlines()[-1].startswith("error: too many open files")


@pytest.mark.long
def test_closed_streams_keep_nothing_from_being_computed(small_table, tmp_path):
    again = """
import os, subprocess, sys
if sys.stderr is not None:
    command = ["sh", "-c", '"$0" "$@" <&- >&- 2>&-', *sys.orig_argv]
    sys.exit(subprocess.run(command).returncode)
"""
    ended = run_benchmark(again, small_table, tmp_path / "out")
    assert ended.returncode == 0
    assert n_done(tmp_path / "out") > 0


#: What joblib meets where /dev/shm has no room, already while its pool is made.
FULL_MEMORY = """
import joblib.externals.loky.backend.synchronize as semaphores
def full(*args): raise OSError(28, "No space left on device")
semaphores._SemLock = full
"""


@pytest.mark.long
def test_shared_memory_without_room_is_named(small_table, tmp_path):
    ended = run_benchmark(FULL_MEMORY, small_table, tmp_path / "out")
    assert ended.returncode == 1
    assert " /dev/shm" in ended.stderr.splitlines()[-1]
