"""The pages of the documentation: their snippets run and print what the page says."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import sklearn

from idfsmec.evaluation import Protocol, accuracy
from idfsmec.features import registry
from idfsmec.selection._registry import _methods
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

DOCS = Path(__file__).parents[2] / "docs"
SNIPPET = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
PAGES = {
    "guide/commands.md": 1,
    "guide/extending.md": 4,
    "guide/parameters.md": 3,
    "guide/report.md": 2,
    "quickstart.md": 2,
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table and results, and everything registered as before afterwards."""
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    features, methods = set(registry), dict(_methods)
    with sklearn.config_context():
        yield tmp_path
    for name in set(registry) - features:
        registry.remove(name)
    _methods.clear()
    _methods.update(methods)
    plt.close("all")


def names_for(page):
    """What the reader has when the page begins."""
    table = make_cohort(n_channels=8)
    if page == "guide/report.md":
        protocol = Protocol(rates=[0.3], n_splits=2, ks=[2, 4], n_inner_splits=2)
        accuracy(
            table, "results", methods=["ANOVA F"], protocol=protocol, n_jobs=1, progress=False
        )
    table.write("table.parquet")
    FeatureTable(table.X, table.y, table.subjects).write("features.csv")
    return {
        "__name__": "__main__",
        "table": table,
        "X": table.X,
        "y": table.y,
        "subjects": table.subjects,
    }


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_run_and_print_what_the_page_says(page, here):
    text = (DOCS / page).read_text("utf-8")
    blocks = [(code, said) for code, said in SNIPPET.findall(text) if not code.startswith(">>>")]
    assert len(blocks) >= PAGES[page]
    names = names_for(page)
    for code, said in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if said.startswith("...\n"):  # the page shows the end only
            assert printed.getvalue().endswith(said.removeprefix("...\n"))
        elif said:
            assert printed.getvalue() == said


def test_the_snippet_about_dask_runs_as_a_program_of_its_own(here):
    names_for("guide/dask.md")
    ((code, said),) = SNIPPET.findall((DOCS / "guide/dask.md").read_text("utf-8"))
    begin = "from idfsmec.table import FeatureTable\ntable = FeatureTable.read('table.parquet')\n"
    Path("program.py").write_text(begin + code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == said


def test_every_page_of_the_issue_can_be_found_by_its_name():
    index = (DOCS / "index.md").read_text("utf-8")
    for name, page in {
        "Quick start": "quickstart.md",
        "Your own recordings": "guide/recordings.md",
        "Reproduce the paper": "guide/reproduce.md",
        "Choosing lam, gamma and k": "guide/parameters.md",
        "Missing channels": "guide/missing.md",
        "Honest evaluation": "guide/evaluation.md",
        "Scaling out with Dask": "guide/dask.md",
        "Adding your own": "guide/extending.md",
        "The method and the errata of the paper": "method.md",
    }.items():
        assert f"[{name}]({page})" in index
        assert (DOCS / page).read_text("utf-8").startswith(f"# {name}")
    assert "api" in index


def test_every_page_of_the_guide_is_in_its_table_of_contents():
    listed = (DOCS / "guide" / "index.md").read_text("utf-8").split()
    for page in (DOCS / "guide").glob("*.md"):
        assert page.stem == "index" or page.stem in listed, page.name


def test_the_page_on_commands_names_every_command_and_function():
    from idfsmec import cli

    text = (DOCS / "guide" / "commands.md").read_text("utf-8")
    for name in set(cli.__all__) - {"app"}:
        assert f"`idfsmec {name}" in text
        assert f"`cli.{name}(" in text
