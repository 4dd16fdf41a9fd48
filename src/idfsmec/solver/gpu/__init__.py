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
from idfsmec.solver.problem import (
    MARGIN,
    RIDGE,
    ChannelProblems,
    redundancy_product,
    start_projection,
)
from idfsmec.solver.solve import (
    CHECK_EVERY,
    EASED_BY,
    EASED_TO,
    EASED_TO_FOR_W,
    LONG,
    Options,
    Solution,
    State,
    feature_gains,
    iterate,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Sizes that the kernels are made for: beyond, registers run out. Vectors have the largest size, a
#: feature for each thread: of shorter ones threads hold copies, which may differ by rounding, and
#: with them what is decided (a problem of 4 features ended with another U than that of its theta).
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
    """Return whether there are kernels for such problems on this device."""
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
    A: Array,
    P: Array,
    y2: Array,
    which: Indices,
    weights: Array,
    options: Options,
    wanted: Indices,
) -> tuple[Solution, Array]:
    """Solve problems (b) that the kernels cover, as :func:`~idfsmec.solver.solve.solve` does.

    ``A``, ``P``, ``y2`` are moments (m), ``which`` (b,) says the moments of each problem and
    ``weights`` (b,) its redundancy weight. The history of ``wanted`` is kept. Returns the solution
    in units of y2, and what adding each feature alone would take off the loss, (b, d).
    """
    import torch

    from idfsmec.solver.gpu import kernels

    like: dict[str, Any] = {"dtype": torch.float64, "device": options.device}
    whole: dict[str, Any] = {"dtype": torch.int32, "device": options.device}
    begin = _begin(A, P, y2, which, weights, like)
    A_all, P_all, R_all, A_top, bound, theta, W, scalars = begin
    b, d, tol = which.size, A.shape[1], options.tol
    theta_before, W_before = theta.clone(), W.clone()
    support = torch.zeros_like(theta, dtype=torch.int32)
    numbers = torch.tensor([tol, *NUMBERS], **like)
    n_most = min(options.max_iter, LONG)
    course = torch.full((n_most + 1, max(1, wanted.size)), np.inf, **like)
    slot = torch.full((b,), -1, **whole)
    slot[torch.as_tensor(wanted, device=options.device)] = torch.arange(wanted.size, **whole)
    course[0, : wanted.size] = scalars[wanted, 0]
    n_iter, active = torch.zeros((b,), **whole), torch.arange(b, **whole)
    # Numbers of features with weight, unknowns, and whether the whole system is solved.
    forms = (
        (0, min(14, d - 2), 32, False),
        (14, d - 2, 64, False),
        (d - 2, d, 1 << (3 * d + 4).bit_length(), True),
    )
    for done in range(0, n_most, CHECK_EVERY):
        n_steps = min(CHECK_EVERY, n_most - done)
        record = (slot, course, course.shape[1], d)
        kernels.iterate_kernel[(active.shape[0],)](
            *(active, A_all, R_all, P_all, A_top, bound, numbers),
            *(theta, W, theta_before, W_before, support, scalars, *record, done, n_steps),
            D=MOST_FEATURES,
            num_warps=1,
        )
        settled = active[scalars[active, 4] > 0]
        n_positive = (theta[settled] > 0).sum(1)
        for least, most, length, all_features in forms:
            chosen = settled[(n_positive > least) & (n_positive <= most)]
            if chosen.shape[0]:
                kernels.polish_kernel[(chosen.shape[0],)](
                    *(chosen, A_all, R_all, P_all, numbers, theta, W, scalars, *record),
                    *(done + n_steps, int(done + n_steps >= LONG)),
                    D=MOST_FEATURES,
                    N=length,
                    WHOLE=all_features,
                    num_warps=_WARPS[length],
                )
        n_iter[active] = done + n_steps
        active = active[scalars[active, 3] > tol]
        if active.shape[0] == 0:
            break
    left = active.cpu().numpy().astype(np.intp)
    host = [part.cpu().numpy() for part in (theta, W, theta_before, W_before, support, scalars)]
    steps = n_iter.cpu().numpy().astype(np.int64)
    residual = P_all - (theta[:, None, :] * W) @ A_all
    gains = ((residual**2).sum(1) / torch.diagonal(A_all, dim1=1, dim2=2)).cpu().numpy()
    # Problems that ended earlier keep their value.
    history = np.minimum.accumulate(course.cpu().numpy()[:, : wanted.size])
    if left.size and options.max_iter > n_most:
        rest = ChannelProblems.from_moments(A[which[left]], P[which[left]], y2[which[left]])
        rest = rest.normalised().weighted(weights[left])
        late = np.flatnonzero(np.isin(wanted, left))
        end = iterate(
            _state(rest, host, left),
            np.ones(left.size),
            tol,
            options.max_iter,
            done=n_most,
            wanted=np.searchsorted(left, wanted[late]),
        )
        host[0][left], host[1][left], host[5][left, 0] = end.theta, end.W, end.objective
        host[5][left, 3], steps[left] = end.kkt_residual, end.n_iter
        gains[left] = feature_gains(rest, end.theta, end.W)
        history = np.pad(history, ((0, len(end.history) - 1), (0, 0)), mode="edge")
        history[n_most:, late] = end.history
    history = history[: int(steps[wanted].max(initial=0)) + 1]
    value, far = host[5][:, 0].copy(), host[5][:, 3].copy()
    return Solution(host[0], host[1], value, far, steps, history), gains


def _begin(
    A: Array, P: Array, y2: Array, which: Indices, weights: Array, like: dict[str, Any]
) -> tuple[Any, ...]:
    """Problems in units of y2 and their start, on the device; labels are one-hot and centred."""
    import torch

    moments, labels, unit = (torch.as_tensor(part, **like) for part in (A, P, y2))
    norms = torch.diagonal(moments, dim1=1, dim2=2).sqrt()
    R = (moments / norms[:, :, None] / norms[:, None, :]) ** 2
    tops = [_largest(part) / unit for part in (moments, R)]
    start = _start(moments, labels)
    moments, labels, R = (part / unit[:, None, None] for part in (moments, labels, R))
    index = torch.as_tensor(which, device=like["device"])
    lam = torch.as_tensor(weights, **like)
    A_all, P_all, R_all = moments[index], labels[index], R[index] * lam[:, None, None]
    A_top, R_top = tops[0][index], tops[1][index] * lam
    trace = 2.0 * torch.diagonal(A_all, dim1=1, dim2=2).amax(1)
    theta = torch.full((which.size, A.shape[1]), 1.0 / A.shape[1], **like)
    W = start[index].contiguous()
    # U, momentum, ease, residual, whether Newton's method may end it.
    scalars = torch.ones((which.size, 5), **like)
    weighted = theta[:, None, :] * W
    fit = (weighted * (weighted @ A_all - 2.0 * P_all)).sum((1, 2))
    redundancy = (theta * (theta[:, None, :] @ R_all)[:, 0]).sum(1)
    scalars[:, 0] = 1.0 + fit + redundancy
    bound = R_top + torch.minimum(A_top, trace)
    return A_all, P_all, R_all, A_top, bound, theta, W, scalars


def _largest(matrices: Any) -> Any:
    """Largest eigenvalues; a GPU's routine takes two thirds of a megabyte beside each matrix."""
    import torch

    return torch.cat([torch.linalg.eigvalsh(part)[:, -1] for part in matrices.split(2048)])


def _start(A: Any, P: Any) -> Any:
    """The start of :func:`~idfsmec.solver.problem.start_projection`; where P vanishes, NumPy's."""
    import torch

    # The rows of P add up to zero: P = left * size * right with one direction.
    half = 0.5**0.5
    difference = half * (P[:, 0] - P[:, 1])
    size = torch.linalg.vector_norm(difference, dim=1)
    V = (difference / size.clamp_min(1e-300)[:, None])[:, None, :]
    identity = torch.eye(A.shape[1], dtype=A.dtype, device=A.device)
    inside = V.mT @ V
    across, twice = V.mT @ (V @ A), V.mT @ ((V @ A @ V.mT) @ V)
    lift = torch.diagonal(A, dim1=1, dim2=2).amax(1)[:, None, None]
    costs = A - across - across.mT + twice + lift * (inside + RIDGE * identity)
    seed = (V * V.abs()) @ (identity - inside)
    cheap = torch.linalg.solve(costs, torch.linalg.solve(costs, seed.mT)).mT @ (identity - inside)
    cheap = cheap / torch.linalg.vector_norm(cheap, dim=2, keepdim=True).clamp_min(1e-300)
    W = half * torch.cat([V + cheap, cheap - V], dim=1)
    poor = ~(torch.isfinite(W).all((1, 2)) & (size > 1e-10 * P.abs().amax((1, 2))) & (size > 0))
    if bool(poor.any()):
        of_poor = [part[poor].cpu().numpy() for part in (A, P)]
        W[poor] = torch.as_tensor(start_projection(*of_poor), dtype=A.dtype, device=A.device)
    return W


def _state(problems: ChannelProblems, host: list[Any], left: Indices) -> State:
    """Where the kernels left some problems."""
    theta, W, theta_before, W_before, support, scalars = (part[left] for part in host)
    state = State(problems, theta, W)
    state.theta_before, state.W_before = theta_before, W_before
    state.R_theta_before = redundancy_product(problems, theta_before)
    state.support = support > 0
    state.value, state.momentum, state.ease = (scalars[:, k].copy() for k in range(3))
    return state
