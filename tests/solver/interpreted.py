"""Compare the kernels with NumPy on Triton's interpreter, which must be chosen before its import.

``TRITON_INTERPRET=1 python -m tests.solver.interpreted``; too slow for any but small problems.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver import gpu
from idfsmec.solver.solve import Options, solve
from tests.solver.problems import make_problems


def both(lam, b=3, d=8, max_iter=10_000):
    """Solutions by NumPy and by the kernels, in units of y2."""
    problems = make_problems(b=b, d=d, lam=lam)[0]
    options, everything = Options(device="cpu", max_iter=max_iter), np.arange(b)
    moments = (problems.A, problems.P, problems.y2)
    there, _ = gpu.solve_on_gpu(*moments, everything, np.full(b, lam), options, everything)
    return solve(problems.normalised(), max_iter=max_iter, wanted=everything), there


def compare(lam, d):
    """Solve three problems with both."""
    here, there = both(lam, d=d)
    assert_allclose(there.objective, here.objective, rtol=1e-9)
    assert_allclose(there.theta, here.theta, atol=1e-6)
    assert (there.kkt_residual <= 1e-6).all()
    assert_array_equal(there.n_iter, here.n_iter)
    assert_allclose(there.history, here.history, rtol=1e-9)


def hand_over(monkeypatch):
    """Whatever the kernels leave is finished by NumPy, which goes on as if it had begun."""
    monkeypatch.setattr(gpu, "LONG", 40)
    compare(0.01, d=8)


def stop_early():
    """Iterations end where they are told to."""
    here, there = both(1.0, b=1, d=5, max_iter=7)
    assert_array_equal(there.n_iter, [7])
    assert_allclose(there.objective, here.objective, rtol=1e-9)
    assert there.history.shape == (8, 1)


if __name__ == "__main__":
    compare(0.01, d=8)
    compare(1.0, d=8)
    compare(30.0, d=4)
    stop_early()
    with pytest.MonkeyPatch.context() as patched:
        hand_over(patched)
    print("alike")
