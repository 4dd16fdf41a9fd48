"""The guide's examples run as they are printed."""

import doctest
from pathlib import Path

import pytest

from idfsmec.features import registry

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "features.md"


@pytest.fixture
def _registry_as_before():
    before = set(registry)
    yield
    for name in set(registry) - before:
        registry.remove(name)


@pytest.mark.usefixtures("_registry_as_before")
def test_the_guides_examples_run():
    result = doctest.testfile(str(GUIDE), module_relative=False)
    assert result.attempted > 15
    assert result.failed == 0
