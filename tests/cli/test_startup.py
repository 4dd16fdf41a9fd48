"""What starts at once imports little: the libraries that compute wait until a command runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SOURCE_TREE = Path(__file__).parents[2] / "src"
HEAVY = ("sklearn", "scipy", "pandas", "pyarrow", "matplotlib", "joblib")
LOADED = """
import atexit, sys
atexit.register(lambda: print("loaded:", *sys.modules, file=sys.stderr))
from idfsmec.cli import app
app(prog_name="idfsmec")
"""


def heavy_imports(*arguments, **environment):
    """Packages that compute, among those that a call of the command has loaded."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)} | environment,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    loaded = ended.stderr.rpartition("loaded:")[2].split()
    return ended.stdout, sorted({name.partition(".")[0] for name in loaded} & set(HEAVY))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--version"], "idfsmec "),
        (["--help"], "benchmark"),
        (["select", "--help"], "--tune"),
        (["reproduce", "--help"], "modma128"),
    ],
)
def test_version_and_help_load_nothing_that_computes(arguments, said):
    output, heavy = heavy_imports(*arguments)
    assert said in output
    assert heavy == []


def loaded_by(imports):
    asked = f"import sys; {imports}; print(*sys.modules)"
    return subprocess.run(
        [sys.executable, "-c", asked],
        env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


def test_a_sheet_for_a_paper_which_every_benchmark_writes_loads_nothing_that_draws():
    assert "matplotlib" not in loaded_by("from idfsmec.report import write_reporting_checklist")


def test_a_report_loads_none_of_what_computed_its_results():
    loaded = loaded_by("from idfsmec.report import page, summarise")
    assert "matplotlib.pyplot" in loaded
    assert not {"sklearn", "scipy.stats", "scipy.optimize", "torch"} & set(loaded)


@pytest.mark.parametrize(
    "words",
    [
        "be",
        "benchmark t.csv --meth",
        "benchmark t.csv --methods m",
        "benchmark t.csv --patterns r",
        "reproduce mod",
        "features mod",
        "features pred-d003 --labels b",
        "features m.csv --feature s",
    ],
)
def test_the_tab_key_loads_nothing_that_computes(words):
    asked = {"COMP_WORDS": f"idfsmec {words}", "COMP_CWORD": str(len(words.split()))}
    output, heavy = heavy_imports(_IDFSMEC_COMPLETE="complete_bash", **asked)
    assert output.strip()
    assert heavy == []
