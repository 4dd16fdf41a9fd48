"""The gallery's examples about selection run as they stand."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(autouse=True)
def no_window():
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    mpl.pyplot.close("all")
    mpl.use(before)


@pytest.mark.slow
def test_three_blocks(capsys):
    known = runpy.run_path(str(EXAMPLES / "plot_three_blocks.py"))
    said = capsys.readouterr().out
    truth = {"EEG__asymmetry", "audio__pauses", "questionnaire__energy"}
    assert set(known["selector"].get_feature_names_out()) == truth
    assert truth <= set(known["stability"].get_feature_names_out())
    assert "audio          missing" in said
