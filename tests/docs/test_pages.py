"""The pages of the documentation: their snippets run and print what the page says."""

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import sklearn
import typer

from idfsmec import cli
from idfsmec.cli.app import GLOBAL
from idfsmec.evaluation import Protocol, accuracy
from idfsmec.features import FEATURES
from idfsmec.prediction import CLASSIFIERS, IMPUTERS, METHODS
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PUBLIC = ["idfsmec"] + [
    f"idfsmec.{path.parent.name}"
    for path in sorted((ROOT / "src/idfsmec").glob("*/__init__.py"))
    if path.parent.name != "solver"  # arrays in, arrays out, for the package itself
]
FOLDERS = ["guide", "reference"]
# A snippet, and what the page says it prints. `python notest` needs data that nobody ships.
SNIPPET = re.compile(
    r"^```(?:python|pycon)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


def snippets(page):
    return SNIPPET.findall((DOCS / page).read_text("utf-8"))


PAGES = sorted(
    page
    for page in (str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    if not page.startswith(("_build", "auto_examples")) and snippets(page)
)


BLOCKS = re.DOTALL | re.MULTILINE
TEXTS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(str(path.relative_to(ROOT)) for path in sorted(DOCS.glob("*.md"))),
    *(
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in sorted((DOCS / folder).glob("*.md"))
    ),
]


@pytest.fixture
def here(tmp_path, monkeypatch, empty_figure_files):
    """A folder with a table and results, and everything registered as before afterwards."""
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    registries = [(one, set(one)) for one in (FEATURES, METHODS, IMPUTERS, CLASSIFIERS)]
    with sklearn.config_context():
        yield tmp_path
    for registry, before in registries:
        for name in set(registry) - before:
            del registry[name]
    plt.close("all")


def names_for(page):
    """What the reader has when the page begins."""
    table = make_cohort(n_channels=8)
    if page == "guide/compare.md":
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


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_run_and_print_what_the_page_says(page, here):
    names = names_for(page)
    for code, said in snippets(page):
        session = code.startswith(">>>")
        wrong = run_session(code, names, page) if session else run_program(code, said, names)
        assert wrong == ""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_page_is_in_the_table_of_contents_of_its_folder(folder):
    listed = (DOCS / folder / "index.md").read_text("utf-8").split()
    for page in (DOCS / folder).glob("*.md"):
        assert page.stem == "index" or page.stem in listed, page.name


def test_the_front_page_leads_to_every_folder_and_page():
    front = (DOCS / "index.md").read_text("utf-8")
    for folder in FOLDERS:
        assert f"({folder}/index.md)" in front
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or f"({page.name})" in front


def anchors(page):
    """Names by which links reach the headings of a page, as MyST makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize(
    "page", [*DOCS.glob("*.md"), *DOCS.glob("*/*.md")], ids=lambda path: path.name
)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text("utf-8")):
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if other.suffix == ".md" and "auto_examples" not in target:
            assert other.exists(), target
            assert not anchor or anchor in anchors(other), target


COMMAND = re.compile(r"^(?:\$ )?idfsmec (\w+)(.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", TEXTS)
def test_commands_of_the_pages_have_the_options_that_they_show(page):
    commands = typer.main.get_command(cli.app).commands
    for block in re.findall(
        r"^```(?:sh|console)\n(.*?)^```",
        (ROOT / page).read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    ):
        for name, rest in COMMAND.findall(block):
            known = {option for parameter in commands[name].params for option in parameter.opts}
            shown = set(re.findall(r"(?<!\S)--?[a-z][\w-]*", rest.split(" #")[0]))
            assert shown <= known | set(GLOBAL), f"idfsmec {name}{rest}"


def test_files_that_pages_name_exist():
    for page in TEXTS:
        text = (ROOT / page).read_text("utf-8")
        for name in re.findall(
            r"`((?:tests|src|benchmarks|docs(?!/_build)|fuzz)/[\w./-]+)`", text
        ):
            assert (ROOT / name).exists(), f"{page}: {name}"
        for name in re.findall(r"python -m (benchmarks\.[\w.]+)", text):
            assert (ROOT / name.replace(".", "/")).with_suffix(".py").exists(), f"{page}: {name}"


@pytest.mark.parametrize("package", PUBLIC)
def test_the_reference_names_what_a_package_exports(package):
    listed, module = {}, ""
    for line in (DOCS / "reference" / "api.rst").read_text("utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            listed.setdefault(module, set()).add(line.strip())
    found = importlib.import_module(package)
    names = getattr(found, "__all__", ())  # a subpackage without is internal
    exported = {name for name in names if callable(getattr(found, name))} - {"app"}
    assert exported <= set().union(*listed.values())
    assert all(hasattr(found, name) for name in listed.get(package, ()))


@pytest.mark.parametrize("page", [page for page in TEXTS if page.startswith("docs/")])
def test_every_formula_can_be_written_without_a_program_from_the_network(page):
    mathml = pytest.importorskip("docutils.utils.math.latex2mathml")
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", (ROOT / page).read_text("utf-8"), flags=BLOCKS)
    for formula in re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL):
        assert mathml.tex2mathml(formula, as_block=True).startswith("<math")
    for formula in re.findall(r"\$([^$\n]+)\$", re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)):
        assert mathml.tex2mathml(formula).startswith("<math")
