"""The end of a problem on a GPU, as a Triton kernel: one of two forms of Newton's method."""

from __future__ import annotations

from idfsmec.solver._kernel import conditions, kernel, load_rows, load_square, store_rows, tl
from idfsmec.solver._kernel_newton import polish_support
from idfsmec.solver._kernel_whole import polish_whole


@kernel
def polish(
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
    A, R = load_square(A_at, d, D), load_square(R_at, d, D)
    w0, w1 = load_rows(W_ptr, problem, d, D)
    value = tl.load(at)
    # Known when the kernel is made: it has one of the two.
    if WHOLE:
        theta, w0, w1, value = polish_whole(
            A_at, R_at, A, R, p0, p1, d, valid, theta, w0, w1, value, patient > 0, numbers, D, N
        )
    else:
        theta, w0, w1, value = polish_support(
            A_at, R_at, A, R, p0, p1, d, valid, theta, w0, w1, value, patient > 0, numbers, D, N
        )
    _, _, _, _, _, _, _, _, _, far = conditions(A, R, p0, p1, theta, w0, w1, valid)
    tl.store(theta_ptr + vector, theta, mask=valid)
    store_rows(W_ptr, problem, d, w0, w1, D)
    tl.store(at, value)
    tl.store(at + 3, far)
    slot = tl.load(slot_ptr + problem)
    tl.store(course_ptr + done * n_slots + tl.maximum(slot, 0), value, mask=slot >= 0)
