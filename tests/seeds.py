"""No test draws without a seed: what asks for a generator without one fails, but by ``chance``.

Generators of other packages are left alone.
"""

import sys

import numpy as np
import sklearn.utils

_make_generator, _check_random_state = np.random.default_rng, sklearn.utils.check_random_state
#: Whether the present test is about chance itself (``pytest.mark.chance``).
by_chance = False


def _refuse(seed):
    caller = sys._getframe(2).f_globals.get("__name__", "")
    if seed is None and not by_chance and caller.startswith(("idfsmec", "tests")):
        raise AssertionError(f"{caller} makes a generator without a seed: give random_state")


def default_rng(seed=None):
    """As NumPy's."""
    _refuse(seed)
    return _make_generator(seed)


def check_random_state(seed):
    """As scikit-learn's."""
    _refuse(seed)
    return _check_random_state(seed)


# Before modules of the package take them.
np.random.default_rng = default_rng
sklearn.utils.check_random_state = check_random_state
