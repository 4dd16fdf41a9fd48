"""Many problems of two classes on a GPU: the loop of :mod:`batch` by kernels of our own.

Operations on whole batches, as :mod:`batch` has them, cost a GPU a launch each and a trip of every
matrix to the chip; here a launch does twenty iterations. Few problems are left after
:data:`~idfsmec.solver.batch.LONG` iterations, or have weight on all features: these are finished
by :mod:`batch`, from where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from idfsmec.solver import newton
from idfsmec.solver._array import to_device, to_numpy
from idfsmec.solver.batch import (
    CHECK_EVERY,
    EASED_BY,
    EASED_TO,
    EASED_TO_FOR_W,
    LONG,
    Pace,
    Solution,
    solve,
)
from idfsmec.solver.problem import ChannelProblems, objective
from idfsmec.solver.steps import MARGIN, theta_curvature
from idfsmec.solver.support import centred

# So many are finished sooner by the host.
_FEW = 4096
# Sizes that the kernels are made for: beyond, registers run out.
_FEWEST_FEATURES, _MOST_FEATURES = 4, 32
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


def suits(problems: ChannelProblems) -> bool:
    """Whether the kernels can solve these: two classes, few features, on a GPU."""
    if isinstance(problems.A, np.ndarray) or problems.A.element_size() != 8:
        return False
    _, n_classes, n_features = problems.shape
    return has_kernels(str(problems.A.device), n_classes, n_features)


def has_kernels(device: str | None, n_classes: int, n_features: int) -> bool:
    """Whether there are kernels for such problems on this device.

    Examples
    --------
    >>> has_kernels("cpu", n_classes=2, n_features=18)
    False
    """
    if not (device or "").startswith("cuda") or find_spec("triton") is None:
        return False
    import torch

    usable = torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= (7, 0)
    return usable and n_classes == 2 and _FEWEST_FEATURES <= n_features <= _MOST_FEATURES


@dataclass
class _Batch:
    """Arrays that the kernels share, and how to start these."""

    problems: ChannelProblems  # in units of y2
    theta: Any
    W: Any
    scalars: Any  # U, momentum, ease, residual, whether Newton's method may end it
    course: Any  # U of some problems after each iteration

    def __post_init__(self) -> None:
        import torch

        p = self.problems
        self.matrices = [part.contiguous() for part in (p.A, p.R, p.P)]
        self.bounds = [p.A_top.contiguous(), theta_curvature(p)]
        self.before = [self.theta.clone(), self.W.clone()]
        self.support = torch.zeros_like(self.theta, dtype=torch.int32)
        self.centred = centred(p)

    def advance(self, active: Any, numbers: Any, slot: Any, done: int, n_steps: int) -> None:
        """First-order steps of the active problems, and Newton's where these have settled."""
        from idfsmec.solver import _kernel, _kernel_polish

        grid = (active.shape[0],)
        d = self.theta.shape[1]
        size = _power_of_two(d)
        course = (slot, self.course, self.course.shape[1], d)
        points = (self.theta, self.W)
        _kernel.iterate[grid](
            *(active, *self.matrices, *self.bounds, numbers, *points, *self.before),
            *(self.support, self.scalars, *course, done, n_steps),
            D=size,
            num_warps=1,
        )
        for some, options in self._settled(active):
            _kernel_polish.polish[(some.shape[0],)](
                *(some, *self.matrices, numbers, *points, self.scalars, *course),
                *(done + n_steps, int(done + n_steps >= LONG)),
                D=size,
                **options,
            )

    def pace(self, some: Any, n_iter: int) -> Pace:
        """What the iterations of some problems have come to."""
        theta_before, W_before = (part[some] for part in self.before)
        scalars = self.scalars[some]
        return Pace(
            n_iter, theta_before, W_before, self.support[some] > 0, scalars[:, 1], scalars[:, 2]
        )

    def _settled(self, active: Any) -> Iterator[tuple[Any, dict[str, int]]]:
        """Problems that Newton's method may end, and what fits the size of their support."""
        d = self.theta.shape[1]
        settled = active[self.scalars[active, 4] > 0]
        n_positive = (self.theta[settled] > 0).sum(1)
        n_positive[~self.centred[settled]] = d
        whole = _power_of_two(3 * d + 5)
        for least, most, length, on_all in (
            (0, min(14, d - 2), 32, False),
            (14, d - 2, 64, False),
            (d - 2, d, whole, True),
        ):
            some = settled[(n_positive > least) & (n_positive <= most)]
            if some.shape[0]:
                yield some, {"N": length, "WHOLE": on_all, "num_warps": _WARPS[length]}


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def solve_on_gpu(
    problems: ChannelProblems,
    *,
    tol: float,
    max_iter: int,
    start: tuple[Any, Any],
    wanted: Any,
) -> Solution:
    """:func:`~idfsmec.solver.batch.solve` for problems that :func:`suits`.

    Parameters
    ----------
    problems, tol, max_iter, start
        As there.
    wanted : ndarray of int
        Problems whose course is kept; the history has no others.
    """
    import torch

    b = problems.shape[0]
    like = {"dtype": torch.float64, "device": problems.A.device}
    places = {"dtype": torch.int32, "device": problems.A.device}
    numbers = torch.tensor([tol, *NUMBERS], **like)
    n_most = min(max_iter, LONG)
    batch = _begin(problems, start, torch.full((n_most + 1, max(1, wanted.size)), np.inf, **like))
    slot = torch.full((b,), -1, **places)
    slot[torch.as_tensor(wanted, device=slot.device)] = torch.arange(wanted.size, **places)
    batch.course[0, : wanted.size] = batch.scalars[wanted, 0]
    n_iter, active = torch.zeros((b,), **places), torch.arange(b, **places)
    for done in range(0, n_most, CHECK_EVERY):
        n_steps = min(CHECK_EVERY, n_most - done)
        batch.advance(active, numbers, slot, done, n_steps)
        n_iter[active] = done + n_steps
        active = active[batch.scalars[active, 3] > tol]
        if active.shape[0] == 0:
            break
    course = (batch.course * problems.y2[wanted] if wanted.size else batch.course).cpu().numpy()
    found = Solution(
        batch.theta, batch.W, batch.scalars[:, 0] * problems.y2, batch.scalars[:, 3], n_iter, []
    )
    left = active.cpu().numpy()
    pace = batch.pace(active, n_most)
    rest = _finish(problems, found, active, tol, max_iter, pace) if left.size else None
    found.history.extend(_history(course, n_iter.cpu().numpy(), wanted, left, rest))
    return found


def _begin(problems: ChannelProblems, start: tuple[Any, Any], course: Any) -> _Batch:
    import torch

    problems = problems.normalised()
    theta, W = (part.clone(memory_format=torch.contiguous_format) for part in start)
    scalars = torch.ones((theta.shape[0], 5), dtype=theta.dtype, device=theta.device)
    scalars[:, 0] = objective(problems, theta, W)
    return _Batch(problems, theta, W, scalars, course)


def _finish(
    problems: ChannelProblems, found: Solution, left: Any, tol: float, max_iter: int, pace: Pace
) -> Solution | None:
    """Go on with what is left, from where it is."""
    if max_iter <= pace.n_iter:
        return None
    some, start = problems.take(left), (found.theta[left], found.W[left])
    if left.shape[0] <= _FEW:
        some = ChannelProblems(*(to_numpy(part) for part in vars(some).values()))
        start = tuple(to_numpy(part) for part in start)
        pace = Pace(pace.n_iter, *(to_numpy(part) for part in list(vars(pace).values())[1:]))
    rest = solve(some, tol=tol, max_iter=max_iter, start=start, pace=pace)
    for name in ("theta", "W", "objective", "kkt_residual", "n_iter"):
        whole = getattr(found, name)
        whole[left] = to_device(getattr(rest, name), whole.device).to(whole.dtype)
    return rest


def _history(
    course: Any, n_iter: Any, wanted: Any, left: Any, rest: Solution | None
) -> list[tuple[Any, Any]]:
    """The course of the wanted problems, each staying where it ended."""
    if wanted.size == 0:
        return []
    rows = np.empty((int(n_iter[wanted].max()) + 1, wanted.size))
    for column, problem in enumerate(wanted):
        own = course[: n_iter[problem] + 1, column]
        at = np.flatnonzero(left == problem)
        if rest is not None and at.size:
            own = np.concatenate([own, rest.course(at)[1:, 0]])
        rows[: own.size, column] = own
        rows[own.size :, column] = own[-1]
    return [(wanted, row) for row in rows]
