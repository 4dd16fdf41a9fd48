"""First-order steps on a GPU, as a Triton kernel: without leaving the chip.

One program works on one problem of two classes. Its matrices stay in registers; vectors of
features have length ``D``, those of Newton's unknowns length ``N``, both powers of two, with zeros
beyond the problem's own sizes. The steps are those of :mod:`idfsmec.solver.solve`.

Triton's dialect asks for two things. Numbers such as 0.97 come in an array (see
:data:`idfsmec.solver.gpu.NUMBERS`): written in a kernel they would have single precision. And two
names of one value, before a loop, would be one variable in it: they must not be assigned so.
"""

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with PyTorch for GPUs; without it, kernels are only read
    triton = tl = None


def jit(function: Any) -> Any:
    """Make a part of a kernel."""
    return function if triton is None else triton.jit(function)


def kernel(function: Any) -> Any:
    """Make a kernel: compiled once for all values of its whole numbers."""
    changing = ("n_slots", "d", "done", "n_steps", "patient")
    return function if triton is None else triton.jit(function, do_not_specialize=changing)


@jit
def times(matrix, vector):
    """A symmetric matrix times a vector."""
    return tl.sum(matrix * vector[:, None], axis=0)


@jit
def norm(vector, tiny):
    """Euclidean norm, never zero."""
    return tl.sqrt(tl.sum(vector * vector, axis=0)) + tiny


@jit
def simplex(points, valid):
    """Nearest point of the simplex; every feature is compared with every other, none sorted."""
    larger = ((points[:, None] >= points[None, :]) & valid[:, None]).to(tl.float64)
    count = tl.sum(larger, axis=0)
    total = tl.sum(larger * tl.where(valid, points, 0.0)[:, None], axis=0)
    kept = (points * count > total - 1.0) & valid
    n_kept = tl.sum(kept.to(tl.float64), axis=0)
    threshold = (tl.sum(tl.where(kept, points, 0.0), axis=0) - 1.0) / n_kept
    return tl.where(valid, tl.maximum(points - threshold, 0.0), 0.0)


@jit
def polar(first, second, tiny):
    """Nearest orthonormal rows."""
    l11 = norm(first, tiny)
    q1 = first / l11
    l21 = tl.sum(second * q1, axis=0)
    rest = second - l21 * q1
    rest = rest - tl.sum(rest * q1, axis=0) * q1
    l22 = norm(rest, tiny)
    q2 = rest / l22
    cosine = l11 + l22
    length = tl.sqrt(cosine * cosine + l21 * l21)
    cosine, sine = cosine / length, l21 / length
    return cosine * q1 - sine * q2, sine * q1 + cosine * q2


@jit
def residual_of(theta, by_theta, squares, redundancy, counted):
    """Of the first-order conditions: theta's gap over the features that count, W's tangent."""
    infinite = tl.full(theta.shape, float("inf"), tl.float64)
    steepest = tl.min(tl.where(counted, by_theta, infinite), axis=0)
    gap = tl.sum(theta * by_theta, axis=0) - steepest
    return tl.maximum(gap, tl.sqrt(tl.sum(squares, axis=0))) / (1.0 + redundancy)


@jit
def conditions(A, R, p0, p1, theta, w0, w1, counted):
    """Misfits, gradient by theta, tangents, multipliers, U, and the residual.

    The residual of theta is over the features that are ``counted``.
    """
    x0, x1 = theta * w0, theta * w1
    m0, m1 = times(A, x0) - p0, times(A, x1) - p1
    R_theta = times(R, theta)
    by_theta = 2.0 * (w0 * m0 + w1 * m1 + R_theta)
    b0, b1 = 2.0 * theta * m0, 2.0 * theta * m1
    u00, u11 = tl.sum(b0 * w0, axis=0), tl.sum(b1 * w1, axis=0)
    u01 = 0.5 * (tl.sum(b0 * w1, axis=0) + tl.sum(b1 * w0, axis=0))
    t0, t1 = b0 - u00 * w0 - u01 * w1, b1 - u01 * w0 - u11 * w1
    redundancy = tl.sum(theta * R_theta, axis=0)
    value = 1.0 + tl.sum(x0 * (m0 - p0) + x1 * (m1 - p1), axis=0) + redundancy
    far = residual_of(theta, by_theta, t0 * t0 + t1 * t1, redundancy, counted)
    return m0, m1, by_theta, t0, t1, u00, u01, u11, value, far


@jit
def load_rows(pointer, problem, d, D: tl.constexpr):
    """Two rows of features."""
    feature = tl.arange(0, D)
    at = pointer + problem * 2 * d + feature
    return tl.load(at, mask=feature < d, other=0.0), tl.load(at + d, mask=feature < d, other=0.0)


@jit
def store_rows(pointer, problem, d, first, second, D: tl.constexpr):
    """Put both back."""
    feature = tl.arange(0, D)
    at = pointer + problem * 2 * d + feature
    tl.store(at, first, mask=feature < d)
    tl.store(at + d, second, mask=feature < d)


@jit
def load_square(at, d, D: tl.constexpr):
    """A matrix of features."""
    feature = tl.arange(0, D)
    valid = feature < d
    entry = feature[:, None] * d + feature[None, :]
    return tl.load(at + entry, mask=valid[:, None] & valid[None, :], other=0.0)


@kernel
def iterate(
    active,
    A_ptr,
    R_ptr,
    P_ptr,
    A_top_ptr,
    bound_ptr,
    numbers,
    theta_ptr,
    W_ptr,
    theta_before_ptr,
    W_before_ptr,
    support_ptr,
    scalars_ptr,
    slot_ptr,
    course_ptr,
    n_slots,
    d,
    done,
    n_steps,
    D: tl.constexpr,
):
    """First-order steps of one problem, and a look at its conditions.

    Scalars of a problem: U, momentum, ease, residual, whether Newton's method may end it.
    """
    problem = tl.load(active + tl.program_id(0)).to(tl.int64)
    feature = tl.arange(0, D)
    valid = feature < d
    A, R = load_square(A_ptr + problem * d * d, d, D), load_square(R_ptr + problem * d * d, d, D)
    A_diagonal = tl.load(A_ptr + problem * d * d + feature * (d + 1), mask=valid, other=0.0)
    p0, p1 = load_rows(P_ptr, problem, d, D)
    w0, w1 = load_rows(W_ptr, problem, d, D)
    w0_before, w1_before = load_rows(W_before_ptr, problem, d, D)
    vector = problem * d + feature
    theta_at, before_at = theta_ptr + vector, theta_before_ptr + vector
    slot, at = tl.load(slot_ptr + problem), scalars_ptr + problem * 5
    theta = tl.load(theta_at, mask=valid, other=0.0)
    theta_before = tl.load(before_at, mask=valid, other=0.0)
    value, momentum, ease = tl.load(at), tl.load(at + 1), tl.load(at + 2)
    A_top, bound = tl.load(A_top_ptr + problem), tl.load(bound_ptr + problem)
    R_theta, R_theta_before = times(R, theta), times(R, theta_before)
    tiny, eased_by, eased_to = tl.load(numbers + 1), tl.load(numbers + 3), tl.load(numbers + 4)
    to_for_w, margin = tl.load(numbers + 5), tl.load(numbers + 6)
    course_at = course_ptr + done * n_slots + tl.maximum(slot, 0)
    for step in range(n_steps):
        # One step in theta, one in W, and U there.
        new_momentum = 0.5 + tl.sqrt(0.25 + momentum * momentum)
        push = (momentum - 1.0) / new_momentum
        ahead = theta + push * (theta - theta_before)
        by_theta = w0 * (times(A, ahead * w0) - p0) + w1 * (times(A, ahead * w1) - p1)
        by_theta = 2.0 * (by_theta + R_theta + push * (R_theta - R_theta_before))
        new = simplex(ahead - by_theta / (2.0 * ease * bound), valid)
        largest = tl.max(new, axis=0)
        by_trace = tl.sum(A_diagonal * new * new, axis=0)
        curvature = margin * tl.minimum(A_top * largest * largest, by_trace)
        curvature = tl.maximum(ease, to_for_w) * curvature
        z0, z1 = w0 + push * (w0 - w0_before), w1 + push * (w1 - w1_before)
        z0, z1 = polar(
            curvature * z0 - new * (times(A, new * z0) - p0),
            curvature * z1 - new * (times(A, new * z1) - p1),
            tiny,
        )
        new_R = times(R, new)
        x0, x1 = new * z0, new * z1
        fit = x0 * (times(A, x0) - 2.0 * p0) + x1 * (times(A, x1) - 2.0 * p1)
        new_value = 1.0 + tl.sum(fit, axis=0) + tl.sum(new * new_R, axis=0)
        # Kept where U does not rise.
        better = new_value <= value
        theta_before, w0_before, w1_before, R_theta_before = theta, w0, w1, R_theta
        theta, R_theta = tl.where(better, new, theta), tl.where(better, new_R, R_theta)
        w0, w1 = tl.where(better, z0, w0), tl.where(better, z1, w1)
        value, momentum = tl.where(better, new_value, value), tl.where(better, new_momentum, 1.0)
        eased, back = tl.maximum(eased_by * ease, eased_to), tl.minimum(2.0 * ease, 1.0)
        ease = tl.where(better, eased, back)
        tl.store(course_at + (step + 1) * n_slots, value, mask=slot >= 0)
    _, _, _, _, _, _, _, _, _, far = conditions(A, R, p0, p1, theta, w0, w1, valid)
    support_at = support_ptr + vector
    support = (theta > 0.0).to(tl.int32)
    changed = tl.abs(support - tl.load(support_at, mask=valid, other=0))
    near = (tl.sum(changed, axis=0) == 0) & (far > tl.load(numbers + 13) * tl.load(numbers))
    tl.store(support_at, support, mask=valid)
    tl.store(theta_at, theta, mask=valid)
    tl.store(before_at, theta_before, mask=valid)
    store_rows(W_ptr, problem, d, w0, w1, D)
    store_rows(W_before_ptr, problem, d, w0_before, w1_before, D)
    tl.store(at, value)
    tl.store(at + 1, momentum)
    tl.store(at + 2, ease)
    tl.store(at + 3, far)
    tl.store(at + 4, near.to(tl.float64))
