import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

from idfsmec._jobs import available_threads, count_jobs, one_blas_thread
from idfsmec.errors import InputError
from idfsmec.features import compute_features


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
