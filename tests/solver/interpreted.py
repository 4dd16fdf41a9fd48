"""Compare the kernels with NumPy on Triton's interpreter, which must be chosen before its import.

``TRITON_INTERPRET=1 python -m tests.solver.interpreted``; too slow for any but small problems.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec.solver import gpu, solve
from idfsmec.solver.gpu import solve_on_gpu
from idfsmec.solver.solve import default_start
from tests.solver.problems import make_problems


def both(problems, max_iter=10_000):
    """Solutions by NumPy and by the kernels, from the same start."""
    start, everything = default_start(problems), np.arange(problems.shape[0])
    there = solve_on_gpu(problems, "cpu", 1e-6, max_iter, start, everything)
    return solve(problems, max_iter=max_iter, start=start), there


def compare(lam, d):
    """Solve three problems with both."""
    here, there = both(make_problems(b=3, d=d, lam=lam)[0])
    assert_allclose(there.objective, here.objective, rtol=1e-9)
    assert_allclose(there.theta, here.theta, atol=1e-6)
    assert (there.kkt_residual <= 1e-6).all()
    assert_array_equal(there.n_iter, here.n_iter)
    everything = np.arange(3)
    assert_allclose(there.course(everything), here.course(everything), rtol=1e-9)


def hand_over(monkeypatch):
    """Whatever the kernels leave is finished by NumPy, which goes on as if it had begun."""
    monkeypatch.setattr(gpu, "LONG", 40)
    compare(0.01, d=8)


def stop_early():
    """Iterations end where they are told to."""
    here, there = both(make_problems(b=1, d=5)[0], max_iter=7)
    assert_array_equal(there.n_iter, [7])
    assert_allclose(there.objective, here.objective, rtol=1e-9)
    assert there.course(np.arange(1)).shape == (8, 1)


if __name__ == "__main__":
    compare(0.01, d=8)
    compare(1.0, d=8)
    compare(30.0, d=4)
    stop_early()
    with pytest.MonkeyPatch.context() as patched:
        hand_over(patched)
    print("alike")
