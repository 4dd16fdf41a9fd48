"""What the regression-based selectors share: class indicators and scaled columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def one_hot(codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Turn class codes into 0/1 columns, shape (n_samples, n_classes).

    Examples
    --------
    >>> import numpy as np
    >>> one_hot(np.array([1, 0]))
    array([[0., 1.],
           [1., 0.]])
    """
    return np.eye(int(codes.max()) + 1)[codes]


def center(
    X: NDArray[np.float64], *, standardize: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Give columns mean 0 and, if asked, standard deviation 1; tell which are constant.

    Examples
    --------
    >>> import numpy as np
    >>> center(np.array([[1.0, 5.0], [3.0, 5.0]]), standardize=True)
    (array([[-1.,  0.],
           [ 1.,  0.]]), array([False,  True]))
    """
    constant = np.ptp(X, axis=0) == 0
    centred = X - X.mean(axis=0)
    centred[:, constant] = 0
    if standardize:
        deviation = np.sqrt(np.mean(centred**2, axis=0))
        centred /= np.where(deviation > 0, deviation, 1)
    return centred, constant
