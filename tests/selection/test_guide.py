"""The guide's examples about what follows selection run and print what the page says."""

import doctest
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "beyond.md"


def test_the_guide_says_what_happens():
    failed, tried = doctest.testfile(
        str(GUIDE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert tried > 20
    assert failed == 0
