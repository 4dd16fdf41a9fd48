"""Colours mean something, and mean it in both looks."""

import numpy as np
from matplotlib.colors import to_hex

from idfsmec.report.style import SEQUENTIAL, THEME


def test_no_colour_of_the_scale_is_exchanged_in_the_dark_look():
    scale = {to_hex(SEQUENTIAL(step)) for step in range(SEQUENTIAL.N)}
    assert not scale & set(THEME)


def test_the_scale_gets_darker_all_the_way():
    red, green, blue, _ = SEQUENTIAL(np.arange(SEQUENTIAL.N)).T
    assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) < 0).all()
