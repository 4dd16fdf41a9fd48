"""The solver's loop as Triton kernels: first-order steps and Newton's method, on the chip.

One program works on one problem of two classes. Its matrices stay in registers; vectors of
features have length ``D``, those of Newton's unknowns length ``N``, both powers of two, with zeros
beyond the problem's own sizes. The steps are those of :mod:`idfsmec.solver.solve`.

Newton's method has NumPy's two forms; one alone would end in other local minima. Problems with
features left over take steps on the features with weight and on the difference of the two rows of
W, as :class:`idfsmec.solver.newton.Support` explains; their sum is left to the features without
weight. Problems with weight on nearly all features take the steps of the whole system.

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
    positive = (points * count > total - 1.0) & valid
    n_positive = tl.sum(positive.to(tl.float64), axis=0)
    threshold = (tl.sum(tl.where(positive, points, 0.0), axis=0) - 1.0) / n_positive
    return tl.where(valid, tl.maximum(points - threshold, 0.0), 0.0)


@jit
def polar_pair(first, second, tiny):
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
    """Misfits, gradient by theta, tangents, multipliers, U, and the residual of what counts."""
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
def iterate_kernel(
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
    """First-order steps of one problem, and a look at its conditions."""
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
        z0, z1 = polar_pair(
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


@jit
def _short_conditions(A, R, p, theta, v):
    """The same for one row ``v`` in place of two, and on the support; with all on the way."""
    x = theta * v
    misfit = times(A, x) - p
    R_theta = times(R, theta)
    by_theta = 2.0 * (v * misfit + R_theta)
    by_v = 2.0 * theta * misfit
    multiplier = tl.sum(by_v * v, axis=0)
    tangent = by_v - multiplier * v
    redundancy = tl.sum(theta * R_theta, axis=0)
    value = 1.0 + tl.sum(x * (misfit - p), axis=0) + redundancy
    residual = residual_of(theta, by_theta, tangent * tangent, redundancy, theta > 0.0)
    return misfit, by_theta, tangent, multiplier, value, residual


@jit
def pick(vector, place, wanted):
    """``vector[wanted]``, zero where there is no such place."""
    return tl.sum(tl.where(wanted[:, None] == place[None, :], vector[None, :], 0.0), axis=1)


@jit
def solve_system(system, fixed, right, row, n_unknowns, N: tl.constexpr):
    """Gauss and Jordan with the largest pivot; unknowns that are fixed are zero."""
    system = tl.where(fixed[:, None] | fixed[None, :], 0.0, system)
    system += tl.where((row[:, None] == row[None, :]) & fixed[:, None], 1.0, 0.0)
    system = tl.where(row[None, :] == N - 1, right[:, None], system)
    unknown = tl.full([N], -1, tl.int32)  # which one each row ends up with
    pivot = tl.full([N], 1.0, tl.float64)
    for k in range(n_unknowns):
        column = tl.sum(tl.where(row[None, :] == k, system, 0.0), axis=1)
        chosen = row == tl.argmax(tl.where(unknown < 0, tl.abs(column), -1.0), axis=0)
        pivot_row = tl.sum(tl.where(chosen[:, None], system, 0.0), axis=0)
        head = tl.sum(tl.where(chosen, column, 0.0), axis=0)
        system -= tl.where(chosen, 0.0, column / head)[:, None] * pivot_row[None, :]
        unknown = tl.where(chosen, k, unknown)
        pivot = tl.where(chosen, head, pivot)
    right = tl.sum(tl.where(row[None, :] == N - 1, system, 0.0), axis=1) / pivot
    return tl.sum(tl.where(unknown[:, None] == row[None, :], right[:, None], 0.0), axis=0)


@jit
def _system(A_at, R_at, d, s, owner, row, th, entry, e, length, multiplier, damping):
    """Newton's matrix for the unknowns of :func:`_polish_support`."""
    in_theta, inside, upto_length = row < s, row < 2 * s, row <= 2 * s
    g = tl.where(in_theta, entry, th)
    both = inside[:, None] & inside[None, :]
    at = owner[:, None] * d + owner[None, :]
    system = tl.load(A_at + at, mask=both, other=0.0) * (2.0 * g[:, None] * g[None, :])
    system += 2.0 * tl.load(R_at + at, mask=in_theta[:, None] & in_theta[None, :], other=0.0)
    mixed = both & (in_theta[:, None] != in_theta[None, :]) & (owner[:, None] == owner[None, :])
    system += tl.where(mixed, 2.0 * e[:, None], 0.0)
    diagonal = tl.where(upto_length, damping - tl.where(in_theta, 0.0, multiplier), 0.0)
    system += tl.where(row[:, None] == row[None, :], diagonal[:, None], 0.0)
    # The constraints: theta sums to one, v has length one.
    sums, norms = row == 2 * s + 1, row == 2 * s + 2
    along = tl.where(upto_length & ~in_theta, 2.0 * tl.where(inside, entry, length), 0.0)
    system += tl.where(sums[:, None] & in_theta[None, :], 1.0, 0.0)
    system += tl.where(sums[None, :] & in_theta[:, None], 1.0, 0.0)
    system += tl.where(norms[:, None], along[None, :], 0.0)
    return system + tl.where(norms[None, :], along[:, None], 0.0)


@jit
def _without_weight(has, valid, v, u, numbers, D: tl.constexpr):
    """Directions of both rows among the features without weight, orthonormal."""
    tiny, small = tl.load(numbers + 1), tl.load(numbers + 14)
    feature = tl.arange(0, D)
    aside, u = tl.where(has, 0.0, v), tl.where(has, 0.0, u)
    aside = tl.where(norm(aside, tiny) > small * small, aside / norm(aside, tiny), 0.0)
    # Where the sum has no direction of its own, it gets one that the difference has least of.
    taken = tl.where(valid & ~has, tl.abs(aside), 2.0)
    other = tl.where(feature == tl.argmin(taken, axis=0), 1.0, 0.0).to(tl.float64)
    alone = u - tl.sum(u * aside, axis=0) * aside
    u = tl.where(norm(alone, tiny) > small, alone, other)
    u = u - tl.sum(u * aside, axis=0) * aside
    u = u - tl.sum(u * aside, axis=0) * aside
    return aside, u / norm(u, tiny)


@jit
def _owners(has, s, D: tl.constexpr, N: tl.constexpr):
    """The feature that a row of Newton's system belongs to, -1 for the last rows."""
    feature, row = tl.arange(0, D), tl.arange(0, N)
    rank = tl.cumsum(has.to(tl.int32), axis=0) - 1
    wanted = tl.where(row < s, row, row - s)
    hit = (wanted[:, None] == rank[None, :]) & has[None, :] & (row[:, None] < 2 * s)
    return tl.sum(tl.where(hit, feature[None, :] + 1, 0), axis=1) - 1


@jit
def is_better(new_value, value, new_residual, residual, rounding):
    """Whether a step lowers U or, up to rounding, leaves it and comes closer to the conditions."""
    change, slack = new_value - value, rounding * tl.maximum(value, 1.0)
    return (change < -slack) | ((change <= slack) & (new_residual < residual))


@jit
def next_damping(better, damping, numbers):
    """Less of it after a step that helped, more after one that did not."""
    least, first, eased_by = tl.load(numbers + 7), tl.load(numbers + 8), tl.load(numbers + 12)
    eased, raised = tl.maximum(eased_by * damping, least), tl.maximum(30.0 * damping, first)
    return tl.where(better, eased, raised)


@jit
def _polish_support(
    A_at, R_at, p0, p1, d, theta, w0, w1, value, patient, numbers, D: tl.constexpr, N: tl.constexpr
):
    """Newton steps on the support and the rows' difference ``v``, as long as they help.

    Unknown are the weights of the ``s`` features that have one, their entries of ``v``, the length
    of its part elsewhere (along ``aside``), and the multipliers of two constraints; ``owner`` says
    which feature a row is of. The rows' sum ``u`` is left to the features without weight, where it
    costs nothing.
    """
    tol, tiny, half = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    most = tl.load(numbers + tl.where(patient, 10, 9))
    rounding, enough = tl.load(numbers + 11), tl.load(numbers + 13)
    n_steps = tl.where(patient, 40, 8)
    feature, row = tl.arange(0, D), tl.arange(0, N)
    valid = feature < d
    A, R = load_square(A_at, d, D), load_square(R_at, d, D)
    v, u, p = half * (w0 - w1), half * (w0 + w1), half * (p0 - p1)
    has = theta > 0.0
    s = tl.sum(has.to(tl.int32), axis=0)
    owner = _owners(has, s, D, N)
    in_theta, last = row < s, row == 2 * s
    in_v = ~in_theta & (row < 2 * s)
    aside, u = _without_weight(has, valid, v, u, numbers, D)
    misfit, by_theta, tangent, multiplier, _, residual = _short_conditions(A, R, p, theta, v)
    damping, step = tl.load(numbers + 7), 0
    trying = step < n_steps
    while trying:
        th, entry, e = (
            pick(theta, feature, owner),
            pick(v, feature, owner),
            pick(misfit, feature, owner),
        )
        length = tl.sum(v * aside, axis=0)
        system = _system(A_at, R_at, d, s, owner, row, th, entry, e, length, multiplier, damping)
        # Features that lost their weight stay without; rows beyond the system say x = 0.
        fixed = (in_theta & (th <= 0.0)) | (row > 2 * s + 2)
        right = tl.where(in_theta & ~fixed, -pick(by_theta, feature, owner), 0.0)
        right -= tl.where(in_v, pick(tangent, feature, owner), 0.0)
        right += tl.where(last, multiplier * length, 0.0)
        change = solve_system(system, fixed, right, row, 2 * s + 3, N)
        new = theta + pick(tl.where(in_theta, change, 0.0), tl.where(in_theta, owner, -1), feature)
        z = v + pick(tl.where(in_v, change, 0.0), tl.where(in_v, owner, -1), feature)
        z = z + tl.sum(tl.where(last, change, 0.0), axis=0) * aside
        new = simplex(tl.where(theta > 0.0, new, -1.0), valid)
        z = z / norm(z, tiny)
        new_misfit, new_by, new_tangent, new_multiplier, new_value, new_residual = (
            _short_conditions(A, R, p, new, z)
        )
        better = is_better(new_value, value, new_residual, residual, rounding)
        theta, v = tl.where(better, new, theta), tl.where(better, z, v)
        misfit, by_theta = tl.where(better, new_misfit, misfit), tl.where(better, new_by, by_theta)
        tangent = tl.where(better, new_tangent, tangent)
        multiplier = tl.where(better, new_multiplier, multiplier)
        value = tl.where(better, tl.minimum(new_value, value), value)
        residual = tl.where(better, new_residual, residual)
        damping = next_damping(better, damping, numbers)
        step += 1
        trying = (residual > enough * tol) & (damping < most) & (step < n_steps)
    return theta, half * (u + v), half * (u - v), value


@jit
def _whole_system(A_at, R_at, d, row, th, v0, v1, e0, e1, u00, u01, u11, damping):
    """Newton's matrix for the weights of all features and both rows of W."""
    block, owner = row // d, row % d
    inside = block < 3
    in_theta, in_w0, in_w1 = block == 0, block == 1, block == 2
    g0 = tl.where(in_theta, v0, tl.where(in_w0, th, 0.0))
    g1 = tl.where(in_theta, v1, tl.where(in_w1, th, 0.0))
    both = inside[:, None] & inside[None, :]
    entry = owner[:, None] * d + owner[None, :]
    a = tl.load(A_at + entry, mask=both, other=0.0)
    r = tl.load(R_at + entry, mask=in_theta[:, None] & in_theta[None, :], other=0.0)
    system = 2.0 * a * (g0[:, None] * g0[None, :] + g1[:, None] * g1[None, :]) + 2.0 * r
    # Where both are the same feature.
    kind = block[:, None] * 3 + block[None, :]
    same = tl.where((kind == 1) | (kind == 3), 2.0 * e0[:, None], 0.0)
    same += tl.where((kind == 2) | (kind == 6), 2.0 * e1[:, None], 0.0)
    same -= tl.where(kind == 4, u00, 0.0) + tl.where(kind == 8, u11, 0.0)
    same -= tl.where((kind == 5) | (kind == 7), u01, 0.0)
    system += tl.where(both & (owner[:, None] == owner[None, :]), same, 0.0)
    system += tl.where((row[:, None] == row[None, :]) & both, damping, 0.0)
    # The constraints: theta sums to one, W is orthonormal.
    for q in tl.static_range(4):
        if q == 0:
            normal = tl.where(in_theta, 1.0, 0.0).to(tl.float64)
        elif q == 1:
            normal = tl.where(in_w0, 2.0 * v0, 0.0)
        elif q == 2:
            normal = tl.where(in_w0, v1, 0.0) + tl.where(in_w1, v0, 0.0)
        else:
            normal = tl.where(in_w1, 2.0 * v1, 0.0)
        at = (row == 3 * d + q).to(tl.float64)
        system += at[:, None] * normal[None, :] + normal[:, None] * at[None, :]
    return system


@jit
def _polish_whole(
    A_at, R_at, p0, p1, d, theta, w0, w1, value, patient, numbers, D: tl.constexpr, N: tl.constexpr
):
    """Newton steps on all features as long as they help and do not raise U."""
    tol, tiny = tl.load(numbers), tl.load(numbers + 1)
    most = tl.load(numbers + tl.where(patient, 10, 9))
    rounding, enough = tl.load(numbers + 11), tl.load(numbers + 13)
    n_steps = tl.where(patient, 40, 8)
    feature, row = tl.arange(0, D), tl.arange(0, N)
    valid = feature < d
    in_theta, in_w0, in_w1 = row // d == 0, row // d == 1, row // d == 2
    wanted = tl.where(row // d < 3, row % d, -1)
    at = tl.where(valid, feature, -2 * N)
    A, R = load_square(A_at, d, D), load_square(R_at, d, D)
    m0, m1, by_theta, t0, t1, u00, u01, u11, _, far = conditions(
        A, R, p0, p1, theta, w0, w1, theta > 0.0
    )
    damping, step = tl.load(numbers + 7), 0
    trying = step < n_steps
    while trying:
        th = pick(theta, feature, wanted)
        v0, v1 = pick(w0, feature, wanted), pick(w1, feature, wanted)
        e0, e1 = pick(m0, feature, wanted), pick(m1, feature, wanted)
        system = _whole_system(A_at, R_at, d, row, th, v0, v1, e0, e1, u00, u01, u11, damping)
        # Features without weight stay there; rows beyond the system say x = 0.
        fixed = (in_theta & (th <= 0.0)) | (row >= 3 * d + 4)
        right = tl.where(in_theta & ~fixed, -pick(by_theta, feature, wanted), 0.0)
        right += tl.where(in_w0, -pick(t0, feature, wanted), 0.0)
        right += tl.where(in_w1, -pick(t1, feature, wanted), 0.0)
        change = solve_system(system, fixed, right, row, 3 * d + 4, N)
        new = theta + pick(change, row, at)
        z0, z1 = w0 + pick(change, row, at + d), w1 + pick(change, row, at + 2 * d)
        new = simplex(tl.where(theta > 0.0, new, -1.0), valid)
        z0, z1 = polar_pair(z0, z1, tiny)
        n0, n1, n_by, s0, s1, q00, q01, q11, new_value, new_far = conditions(
            A, R, p0, p1, new, z0, z1, new > 0.0
        )
        better = is_better(new_value, value, new_far, far, rounding)
        theta = tl.where(better, new, theta)
        w0, w1 = tl.where(better, z0, w0), tl.where(better, z1, w1)
        m0, m1 = tl.where(better, n0, m0), tl.where(better, n1, m1)
        by_theta = tl.where(better, n_by, by_theta)
        t0, t1 = tl.where(better, s0, t0), tl.where(better, s1, t1)
        u00, u11 = tl.where(better, q00, u00), tl.where(better, q11, u11)
        u01 = tl.where(better, q01, u01)
        value = tl.where(better, tl.minimum(new_value, value), value)
        far = tl.where(better, new_far, far)
        damping = next_damping(better, damping, numbers)
        step += 1
        trying = (far > enough * tol) & (damping < most) & (step < n_steps)
    return theta, w0, w1, value


@kernel
def polish_kernel(
    active,
    A_ptr,
    R_ptr,
    P_ptr,
    numbers,
    theta_ptr,
    W_ptr,
    scalars_ptr,
    slot_ptr,
    course_ptr,
    n_slots,
    d,
    done,
    patient,
    D: tl.constexpr,
    N: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """End one settled problem by Newton's method, on its support or on all features."""
    problem = tl.load(active + tl.program_id(0)).to(tl.int64)
    feature = tl.arange(0, D)
    valid = feature < d
    vector = problem * d + feature
    theta = tl.load(theta_ptr + vector, mask=valid, other=0.0)
    at = scalars_ptr + problem * 5
    p0, p1 = load_rows(P_ptr, problem, d, D)
    A_at, R_at = A_ptr + problem * d * d, R_ptr + problem * d * d
    w0, w1 = load_rows(W_ptr, problem, d, D)
    value = tl.load(at)
    # Known when the kernel is made: it has one of the two.
    if WHOLE:
        theta, w0, w1, value = _polish_whole(
            A_at, R_at, p0, p1, d, theta, w0, w1, value, patient > 0, numbers, D, N
        )
    else:
        theta, w0, w1, value = _polish_support(
            A_at, R_at, p0, p1, d, theta, w0, w1, value, patient > 0, numbers, D, N
        )
    A, R = load_square(A_at, d, D), load_square(R_at, d, D)
    _, _, _, _, _, _, _, _, _, far = conditions(A, R, p0, p1, theta, w0, w1, valid)
    tl.store(theta_ptr + vector, theta, mask=valid)
    store_rows(W_ptr, problem, d, w0, w1, D)
    tl.store(at, value)
    tl.store(at + 3, far)
    slot = tl.load(slot_ptr + problem)
    tl.store(course_ptr + done * n_slots + tl.maximum(slot, 0), value, mask=slot >= 0)
