import os
import signal
import time
from functools import partial

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

from idfsmec import idfs_path
from idfsmec._jobs import Processes
from idfsmec._parallel import available_threads, count_jobs, one_blas_thread
from idfsmec.errors import InputError
from idfsmec.features import compute_features

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("setting", "threads"), [("3", 3), ("1", 1)])
def test_the_usual_variable_limits_threads(monkeypatch, setting, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert available_threads() == threads


@pytest.mark.parametrize("jobs", [1, 2, 7, -1, -2, -50])
def test_jobs_mean_what_they_mean_to_joblib(jobs):
    assert count_jobs(jobs) == joblib.effective_n_jobs(jobs)


@pytest.mark.parametrize("jobs", [0, True, 1.5, "2"])
def test_what_is_no_number_of_jobs_is_refused(jobs):
    with pytest.raises(InputError, match=r"n_jobs=.*: give 1 or more, or -1"):
        count_jobs(jobs)


@pytest.mark.parametrize("setting", ["", "0", "many"])
def test_a_useless_setting_is_ignored(monkeypatch, setting):
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert available_threads() >= 1


def test_blas_is_limited_and_set_free_again():
    before = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    with one_blas_thread():
        inside = {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
    after = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    assert inside == {1}
    assert before == after


def test_features_do_not_depend_on_the_number_of_threads(monkeypatch):
    epochs = np.random.default_rng(0).normal(size=(7, 11, 1000))
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        results.append(compute_features(epochs, 250.0)[0])
    assert_array_equal(*results)


def blas_threads(_):
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def nested(_):
    return Processes.available().n_workers


def die_elsewhere(item, here):
    if os.getpid() != here:
        time.sleep(0.2)  # the first results are on their way
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def hears_ctrl_c(_):
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


def test_processes_give_results_in_order_each_with_one_thread():
    pool = Processes(2)
    assert list(pool.map(partial(pow, 2), range(20))) == [2**k for k in range(20)]
    assert list(pool.map(blas_threads, range(2))) == [{1}, {1}]


def test_a_worker_starts_no_workers():
    assert list(Processes(2).map(nested, range(4))) == [1] * 4


def test_workers_do_not_hear_ctrl_c():
    assert not any(Processes(3).map(hears_ctrl_c, range(6)))


def test_what_killed_workers_leave_is_done_here():
    done = Processes(2).map(partial(die_elsewhere, here=os.getpid()), range(5))
    assert list(done) == list(range(5))


def test_one_worker_is_this_process():
    assert list(Processes(1).map(lambda _: os.getpid(), range(2))) == [os.getpid()] * 2


def test_a_path_on_workers_equals_one_without(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 400)) + 0.3 * y[:, None]
    lams, paths = np.geomspace(0.1, 10.0, 150), []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        channels = np.repeat(np.arange(100), 4)
        paths.append(idfs_path(X, y, channels=channels, lams=lams, channel_loss="in-sample"))
    assert_array_equal(*(path.scores for path in paths))
