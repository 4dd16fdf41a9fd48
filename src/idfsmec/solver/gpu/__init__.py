"""Many problems of two classes on a GPU: the loop of :mod:`idfsmec.solver.solve` by own kernels.

Operations on whole batches cost a GPU a launch each and a trip of every matrix to the chip; here a
launch does twenty iterations. What is left after :data:`~idfsmec.solver.solve.LONG` iterations is
finished by NumPy, from where it is.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.solver import newton
from idfsmec.solver.problem import ChannelProblems, objective, redundancy_product
from idfsmec.solver.solve import (
    CHECK_EVERY,
    EASED_BY,
    EASED_TO,
    EASED_TO_FOR_W,
    LONG,
    Solution,
    State,
    iterate,
)
from idfsmec.solver.updates import MARGIN, theta_curvature

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Sizes that the kernels are made for: beyond, registers run out.
FEWEST_FEATURES, MOST_FEATURES = 4, 32
# Warps for so many unknowns of Newton's method.
_WARPS = {16: 4, 32: 4, 64: 8, 128: 16}
#: What the kernels load from an array, after the tolerance, in this order.
NUMBERS = (
    1e-300,  # keeps norms from zero
    0.5**0.5,
    EASED_BY,
    EASED_TO,
    EASED_TO_FOR_W,
    1.0 + MARGIN,
    newton.LEAST_DAMPING,
    newton.FIRST_DAMPING,
    newton.MOST_DAMPING,
    newton.MOST_IF_PATIENT,
    newton.ROUNDING,
    newton.EASED_BY,
    newton.ENOUGH,
    1e-6,  # shorter vectors have no direction
)


def covers(device: str, n_classes: int, n_features: int) -> bool:
    """Whether there are kernels for such problems on this device.

    Raises
    ------
    ImportError
        PyTorch is not installed.

    Examples
    --------
    >>> covers("cpu", n_classes=2, n_features=18)  # doctest: +SKIP
    False
    """
    if find_spec("torch") is None:
        raise ImportError(
            f'device="{device}" needs PyTorch: pip install "idfsmec[gpu]", or leave device=None.'
        )
    if not device.startswith("cuda") or find_spec("triton") is None:
        return False
    import torch

    usable = torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= (7, 0)
    return usable and n_classes == 2 and FEWEST_FEATURES <= n_features <= MOST_FEATURES


def solve_on_gpu(
    problems: ChannelProblems,
    device: str,
    tol: float,
    max_iter: int,
    start: tuple[Array, Array],
    wanted: Indices,
) -> Solution:
    """Solve problems that the kernels cover, as :func:`~idfsmec.solver.solve.solve` does.

    Parameters
    ----------
    problems, tol, max_iter, start
        As there.
    device : str
    wanted : ndarray of int
        Problems whose course is kept; the history has no others.
    """
    import torch

    from idfsmec.solver.gpu import kernels, newton_kernels

    unit, problems = problems.y2, problems.normalised()
    b, _, d = problems.shape
    like: dict[str, Any] = {"dtype": torch.float64, "device": device}
    places: dict[str, Any] = {"dtype": torch.int32, "device": device}
    parts = (problems.A, problems.R, problems.P, problems.A_top, theta_curvature(problems))
    A, R, P, A_top, bound = (torch.as_tensor(np.ascontiguousarray(part), **like) for part in parts)
    theta, W = (torch.as_tensor(np.ascontiguousarray(part), **like) for part in start)
    theta_before, W_before = theta.clone(), W.clone()
    support = torch.zeros_like(theta, dtype=torch.int32)
    numbers = torch.tensor([tol, *NUMBERS], **like)
    # U, momentum, ease, residual, whether Newton's method may end it
    scalars = torch.ones((b, 5), **like)
    scalars[:, 0] = torch.as_tensor(objective(problems, *start), **like)
    n_most = min(max_iter, LONG)
    course = torch.full((n_most + 1, max(1, wanted.size)), np.inf, **like)
    slot = torch.full((b,), -1, **places)
    slot[torch.as_tensor(wanted, device=device)] = torch.arange(wanted.size, **places)
    course[0, : wanted.size] = scalars[wanted, 0]
    n_iter, active = torch.zeros((b,), **places), torch.arange(b, **places)
    size = _power_of_two(d)
    centred = torch.as_tensor(newton.centred(problems), device=device)
    # Numbers of features with weight, unknowns, and whether the whole system is solved.
    forms = (
        (0, min(14, d - 2), 32, False),
        (14, d - 2, 64, False),
        (d - 2, d, _power_of_two(3 * d + 5), True),
    )
    for done in range(0, n_most, CHECK_EVERY):
        n_steps = min(CHECK_EVERY, n_most - done)
        kept = (slot, course, course.shape[1], d)
        kernels.iterate[(active.shape[0],)](
            *(active, A, R, P, A_top, bound, numbers, theta, W, theta_before, W_before),
            *(support, scalars, *kept, done, n_steps),
            D=size,
            num_warps=1,
        )
        settled = active[scalars[active, 4] > 0]
        n_positive = torch.where(centred[settled], (theta[settled] > 0).sum(1), d)
        for least, most, length, whole in forms:
            some = settled[(n_positive > least) & (n_positive <= most)]
            if some.shape[0]:
                newton_kernels.polish[(some.shape[0],)](
                    *(some, A, R, P, numbers, theta, W, scalars, *kept),
                    *(done + n_steps, int(done + n_steps >= LONG)),
                    D=size,
                    N=length,
                    WHOLE=whole,
                    num_warps=_WARPS[length],
                )
        n_iter[active] = done + n_steps
        active = active[scalars[active, 3] > tol]
        if active.shape[0] == 0:
            break
    left = active.cpu().numpy().astype(np.intp)
    host = [part.cpu().numpy() for part in (theta, W, theta_before, W_before, support, scalars)]
    found = Solution(
        host[0], host[1], host[5][:, 0] * unit, host[5][:, 3].copy(), n_iter.cpu().numpy(), []
    )
    rest = None
    if left.size and max_iter > n_most:
        rest = iterate(_state(problems, host, left), unit[left], tol, max_iter, n_most)
        found.theta[left], found.W[left], found.objective[left] = (
            rest.theta,
            rest.W,
            rest.objective,
        )
        found.kkt_residual[left], found.n_iter[left] = rest.kkt_residual, rest.n_iter
    values = course.cpu().numpy()[:, : wanted.size] * unit[wanted]
    found.history.extend(_history(values, found.n_iter, wanted, left, rest, n_most))
    return found


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _state(problems: ChannelProblems, host: list[Any], left: Indices) -> State:
    """Where the kernels left some problems."""
    theta, W, theta_before, W_before, support, scalars = (part[left] for part in host)
    some = problems.take(left)
    state = State.begin(some, theta, W)
    state.theta_before, state.W_before = theta_before, W_before
    state.R_theta_before = redundancy_product(some, theta_before)
    state.support = support > 0
    state.value, state.momentum, state.ease = (scalars[:, k].copy() for k in range(3))
    return state


def _history(
    course: Array,
    n_iter: NDArray[np.integer],
    wanted: Indices,
    left: Indices,
    rest: Solution | None,
    n_most: int,
) -> list[tuple[Indices, Array]]:
    """The course of the wanted problems, each staying where it ended."""
    if wanted.size == 0:
        return []
    rows = np.empty((int(n_iter[wanted].max()) + 1, wanted.size))
    for column, problem in enumerate(wanted):
        own = course[: min(n_iter[problem], n_most) + 1, column]
        at = np.flatnonzero(left == problem)
        if rest is not None and at.size:
            own = np.concatenate([own, rest.course(at)[1:, 0]])
        rows[: own.size, column] = own
        rows[own.size :, column] = own[-1]
    return [(wanted, row) for row in rows]
