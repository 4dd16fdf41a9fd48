"""Pages of commands and files say what commands say, and what they write."""

import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest

from idfsmec import cli
from tests.evaluation.cohorts import make_cohort

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location("write_commands", DOCS / "write_commands.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_is_what_the_commands_say(writer):
    text = writer.PAGE.read_text("utf-8")
    assert text == writer.renewed(text), "run: python docs/write_commands.py"


def test_a_page_that_lags_behind_is_noticed(writer):
    text = writer.PAGE.read_text("utf-8")
    stale = text.replace("- **`--force`**: Replace", "- **`--force`**: Keep", 1)
    assert stale != text
    assert writer.renewed(stale) == text


def test_the_page_names_every_command_and_function(writer):
    text = writer.PAGE.read_text("utf-8")
    for name in set(cli.__all__) - {"app"}:
        assert f"\n## {name}\n" in text
        assert f"`cli.{name}(" in text


def columns_of(page, section):
    """Names in the first column of the tables of a section, in their order."""
    text = (DOCS / page).read_text("utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with what select, train, predict and benchmark write of a small table."""
    folder = tmp_path_factory.mktemp("written")
    table = str(folder / "table.parquet")
    make_cohort(16, 2, n_channels=4).write(table)
    few = {"methods": ["IDFS-MEC"], "rates": [0.3], "k": [2], "folds": 2, "resamples": 4}
    cli.select(table, folder / "ranking.csv", k=2, resamples=4)
    cli.train(table, folder / "model.skops", folds=2, repeats=1)
    cli.predict(folder / "model.skops", table, folder / "predictions.csv")
    cli.benchmark(table, folder / "results", experiment="accuracy", jobs=1, **few)
    return folder


def test_the_page_of_files_has_the_columns_that_are_written(written):
    stated = columns_of("reference/files.md", "ranking.csv of select")
    ranking = list(pd.read_csv(written / "ranking.csv"))
    sometimes = {"g_adjusted", "p_adjusted"}  # the table has neither age nor sex
    stated = [name for name in stated if not name.startswith("eta_") and name not in sometimes]
    assert stated == ranking
    stated = columns_of("reference/files.md", "Model and predictions")
    predictions = [
        "probability of <class>" if name.startswith("probability of") else name
        for name in pd.read_csv(written / "predictions.csv")
    ]
    assert stated == list(dict.fromkeys(predictions))


def test_the_page_of_files_has_the_files_and_columns_of_a_benchmark(written):
    stated = columns_of("reference/files.md", "Results of a benchmark")
    files = {path.name for path in (written / "results").iterdir()} - {"store.lock"}
    assert files <= set(stated)
    scores = list(pd.read_parquet(written / "results" / "results.parquet"))
    first = stated.index("experiment")
    assert stated[first : first + len(scores)] == scores
    text = (DOCS / "reference" / "files.md").read_text("utf-8")
    for name in pd.read_csv(written / "results" / "ranking.csv"):
        assert f"`{name}`" in text
