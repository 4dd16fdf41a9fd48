"""The pages of the documentation: their snippets run and print what the page says."""

import contextlib
import doctest
import importlib
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
from idfsmec.features import FEATURES
from idfsmec.prediction import CLASSIFIERS, IMPUTERS, METHODS
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PUBLIC = ["idfsmec"] + [
    f"idfsmec.{path.parent.name}" for path in sorted((ROOT / "src/idfsmec").glob("*/__init__.py"))
]
ROOMS = ["howto", "reference", "explanation", "studies"]
# A snippet, and what the page says it prints. `python notest` needs data that nobody ships.
SNIPPET = re.compile(
    r"^```(?:python|pycon)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
OWN_PROGRAM = "howto/dask.md"  # worker processes import it


def snippets(page):
    return SNIPPET.findall((DOCS / page).read_text("utf-8"))


PAGES = sorted(
    page
    for page in (str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    if not page.startswith(("_build", "auto_examples")) and snippets(page) and page != OWN_PROGRAM
)


TEXTS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in sorted((DOCS / room).glob("*.md"))
    ),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table and results, and everything registered as before afterwards."""
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    registries = [(one, set(one)) for one in (FEATURES, METHODS, IMPUTERS, CLASSIFIERS)]
    with sklearn.config_context():
        yield tmp_path
    for registry, before in registries:
        for name in set(registry) - before:
            registry.remove(name)
    plt.close("all")


def names_for(page):
    """What the reader has when the page begins."""
    table = make_cohort(n_channels=8)
    if page == "howto/report.md":
        protocol = Protocol(rates=[0.3], n_splits=2, ks=[2, 4], n_inner_splits=2)
        accuracy(table, "results", methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    table.write("table.parquet")
    FeatureTable(table.X, table.y, table.subjects).write("features.csv")
    return {
        "__name__": "__main__",
        "table": table,
        "X": table.X,
        "y": table.y,
        "subjects": table.subjects,
    }


def run_program(code, said, names):
    """What a snippet without prompts prints in place of the block below it; nothing if alike."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    printed = out.getvalue()
    if said.startswith("...\n"):  # the page shows the end only
        return "" if printed.endswith(said.removeprefix("...\n")) else printed
    return printed if said and printed != said else ""


def run_session(code, names, page):
    """What doctest complains of in a snippet with prompts."""
    test = doctest.DocTestParser().get_doctest(code, names, page, page, 0)
    test.globs = names  # what one snippet makes the next one has
    complaints = io.StringIO()
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags).run(test, out=complaints.write, clear_globs=False)
    return complaints.getvalue()


SLOW = {"reference/commands.md", "howto/select.md", "howto/report.md", "howto/predict.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW)) for page in PAGES],
)
def test_the_snippets_run_and_print_what_the_page_says(page, here):
    names = names_for(page)
    for code, said in snippets(page):
        session = code.startswith(">>>")
        wrong = run_session(code, names, page) if session else run_program(code, said, names)
        assert wrong == ""


def test_the_snippet_about_dask_runs_as_a_program_of_its_own(here):
    names_for(OWN_PROGRAM)
    ((code, said),) = snippets(OWN_PROGRAM)
    begin = "from idfsmec.table import FeatureTable\ntable = FeatureTable.read('table.parquet')\n"
    Path("program.py").write_text(begin + code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == said


@pytest.mark.parametrize("room", ROOMS)
def test_every_page_is_in_the_table_of_contents_of_its_folder(room):
    listed = (DOCS / room / "index.md").read_text("utf-8").split()
    for page in (DOCS / room).glob("*.md"):
        assert page.stem == "index" or page.stem in listed, page.name


def test_the_front_page_leads_to_every_folder():
    front = (DOCS / "index.md").read_text("utf-8")
    for room in ROOMS:
        assert f"({room}/index.md)" in front
    assert "(quickstart.md)" in front


def test_the_page_on_commands_names_every_command_and_function():
    from idfsmec import cli

    text = (DOCS / "reference" / "commands.md").read_text("utf-8")
    for name in set(cli.__all__) - {"app"}:
        assert f"`idfsmec {name}" in text
        assert f"`cli.{name}(" in text


def test_files_that_pages_name_exist():
    for page in TEXTS:
        text = (ROOT / page).read_text("utf-8")
        for name in re.findall(
            r"`((?:tests|src|benchmarks|docs(?!/_build)|fuzz)/[\w./-]+)`", text
        ):
            assert (ROOT / name).exists(), f"{page}: {name}"
        for name in re.findall(r"python -m (benchmarks\.[\w.]+)", text):
            assert (ROOT / name.replace(".", "/")).with_suffix(".py").exists(), f"{page}: {name}"


@pytest.mark.parametrize("room", PUBLIC)
def test_the_reference_names_what_a_room_exports(room):
    listed, module = {}, ""
    for line in (DOCS / "reference" / "api.rst").read_text("utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            listed.setdefault(module, set()).add(line.strip())
    found = importlib.import_module(room)
    exported = {name for name in found.__all__ if callable(getattr(found, name))} - {"app"}
    assert exported <= set().union(*listed.values())
    assert all(hasattr(found, name) for name in listed.get(room, ()))
