"""The few array operations that NumPy and other libraries do not spell alike.

The solver is written against an array namespace ``xp``; with NumPy arrays it is NumPy itself, with
others (PyTorch tensors on a GPU, say) what ``array_api_compat`` makes of their library.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import eigsh

# NumPy 2 has it as a function of its own, which is faster.
_dot_of_rows = getattr(np, "vecdot", partial(np.einsum, "bd,bd->b"))
# Beyond this size all eigenvalues take much longer than the largest one.
_LARGE = 200
# Taking rows out of a matrix is worth it if there are so many times more.
_FEW = 3
# Matrices whose eigenvalues a device finds at a time.
_AT_ONCE = 2048


def namespace(array: Any) -> Any:
    """Return the module (numpy or another array library) that computes with ``array``.

    Examples
    --------
    >>> namespace(np.zeros(2)).__name__
    'numpy'
    """
    if isinstance(array, np.ndarray):
        return np
    import array_api_compat  # only ever needed with arrays that are not NumPy's

    return array_api_compat.array_namespace(array)


def to_device(array: Any, device: Any) -> Any:
    """Hand a NumPy array to PyTorch on ``device``; None leaves it where it is."""
    if device is None:
        return array
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f'device="{device}" needs PyTorch: pip install "idfsmec[gpu]", or leave device=None.'
        ) from error
    return torch.as_tensor(array, device=device)


def to_numpy(array: Any) -> Any:
    """Bring an array back to NumPy."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def put(whole: Any, index: Any, part: Any) -> None:
    """``whole[index] = part``, wherever the three are."""
    if isinstance(index, np.ndarray) and not isinstance(whole, np.ndarray):
        index = to_device(index, whole.device)
        part = to_device(part, whole.device) if isinstance(part, np.ndarray) else part
    whole[index] = part


def arange(stop: int, like: Any) -> Any:
    """``0 ... stop - 1`` beside ``like``."""
    return np.arange(stop) if isinstance(like, np.ndarray) else _beside(like, "arange", stop)


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    """Zeros of the type of ``like``, beside it."""
    if isinstance(like, np.ndarray):
        return np.zeros(shape, dtype=like.dtype)
    return _beside(like, "zeros", shape, dtype=like.dtype)


def eye(size: int, like: Any) -> Any:
    """Identity matrix of the type of ``like``, beside it."""
    if isinstance(like, np.ndarray):
        return np.eye(size, dtype=like.dtype)
    return _beside(like, "eye", size, dtype=like.dtype)


def _beside(like: Any, name: str, *arguments: Any, **options: Any) -> Any:
    return getattr(namespace(like), name)(*arguments, device=like.device, **options)


def dot(left: Any, right: Any) -> Any:
    """Inner products, one for each problem of the batch, shape (b,).

    Examples
    --------
    >>> dot(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
    array([11.,  6.])
    """
    if isinstance(left, np.ndarray):  # several times faster than multiplying, then summing
        if left.ndim == 3:
            left, right = (part.reshape(part.shape[0], -1) for part in (left, right))
        return _dot_of_rows(left, right)
    return namespace(left).sum(left * right, axis=tuple(range(1, left.ndim)))


def dot_over_classes(left: Any, right: Any) -> Any:
    """``sum_k left[:, k, :] * right[:, k, :]``, shape (b, d)."""
    if isinstance(left, np.ndarray):
        return np.einsum("bcd,bcd->bd", left, right)
    return namespace(left).sum(left * right, axis=1)


def is_large(matrices: Any) -> bool:
    """Whether single matrices are worth a look of their own."""
    return isinstance(matrices, np.ndarray) and matrices.shape[-1] > _LARGE


def product(rows: Any, matrices: Any, weights: Any) -> Any:
    """``rows @ matrices`` of shape (b, c, d), where rows are 0 wherever ``weights`` (b, d) are.

    Of fewer matrices each serves several problems in a row. Few features of a large problem have a
    weight, and reading the others' moments takes longer than anything else.

    Examples
    --------
    >>> moments = np.array([[[1.0, 3.0], [3.0, 1.0]]])
    >>> product(np.array([[[2.0, 0.0]]]), moments, np.array([[1.0, 0.0]]))
    array([[[2., 6.]]])
    """
    if rows.shape[0] != matrices.shape[0]:
        return (rows.reshape(matrices.shape[0], -1, rows.shape[2]) @ matrices).reshape(rows.shape)
    if not is_large(matrices):
        return rows @ matrices
    found = np.empty(rows.shape)
    for own, matrix, weight, result in zip(rows, matrices, weights, found, strict=True):
        (some,) = weight.nonzero()
        if _FEW * some.size < matrix.shape[0]:
            np.matmul(own[:, some], matrix[some], out=result)
        else:
            np.matmul(own, matrix, out=result)
    return found


def at_least(array: Any, least: float) -> Any:
    """Raise what is below."""
    if isinstance(array, np.ndarray):
        return np.maximum(array, least)
    return namespace(array).clip(array, least, None)


def concat(parts: list[Any]) -> Any:
    """Join along the second axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=1)
    return namespace(parts[0]).concat(parts, axis=1)


def solve_twice(matrices: Any, right: Any) -> Any:
    """``M^-1 M^-1 right`` for symmetric positive definite matrices M.

    Large matrices are factorised once for both, from their upper halves.
    """
    if not is_large(matrices):
        solve = namespace(matrices).linalg.solve
        return solve(matrices, solve(matrices, right))
    found = np.empty_like(right)
    for place, (matrix, columns) in enumerate(zip(matrices, right, strict=True)):
        # Transposed it is in Fortran's order, as LAPACK wants it.
        factor = cho_factor(matrix.T, lower=True, check_finite=False)
        once = cho_solve(factor, columns, check_finite=False)
        found[place] = cho_solve(factor, once, check_finite=False)
    return found


def largest_eigenvalues(matrices: Any) -> Any:
    """Largest eigenvalue of each symmetric matrix, shape (b,).

    For large matrices by Lanczos' method, rounded up by its tolerance.
    """
    if not isinstance(matrices, np.ndarray):
        # A GPU's routine takes two thirds of a megabyte beside each matrix.
        parts = [matrices[first : first + _AT_ONCE] for first in range(0, len(matrices), _AT_ONCE)]
        xp = namespace(matrices)
        return xp.concat([xp.linalg.eigvalsh(part)[:, -1] for part in parts])
    if matrices.shape[-1] <= _LARGE:
        return np.linalg.eigvalsh(matrices)[:, -1]
    start = np.random.default_rng(0).normal(size=matrices.shape[-1])
    tops = [
        eigsh(matrix, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)[0]
        for matrix in matrices
    ]
    return (1.0 + 1e-3) * np.array(tops)


def largest(points: Any) -> Any:
    """Give the largest of each row; of many short rows it is found faster in columns."""
    if isinstance(points, np.ndarray):
        return np.ascontiguousarray(points.T).max(axis=0)
    return namespace(points).max(points, axis=1)


def descending(points: Any) -> Any:
    """Sort each row from the largest on; rows become columns, in which sums of many are faster.

    Examples
    --------
    >>> descending(np.array([[1.0, 3.0], [5.0, 2.0]]))
    array([[3., 5.],
           [1., 2.]])
    """
    if isinstance(points, np.ndarray):
        return np.ascontiguousarray(np.sort(points, axis=-1)[:, ::-1].T)
    xp = namespace(points)
    return xp.flip(xp.sort(points, axis=-1), axis=-1).T


def cumulative_sum(array: Any) -> Any:
    """Cumulative sum along the first axis."""
    if isinstance(array, np.ndarray):
        return np.cumsum(array, axis=0)
    return namespace(array).cumulative_sum(array, axis=0)


def transpose(array: Any) -> Any:
    """Swap the last two axes."""
    return array.swapaxes(-1, -2)


def diagonal(matrices: Any) -> Any:
    """Diagonals of a batch of square matrices."""
    index = arange(matrices.shape[-1], matrices)
    return matrices[..., index, index]
