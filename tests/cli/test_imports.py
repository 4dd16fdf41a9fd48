"""What commands load: only the subpackages that they use, and a store once."""

import json
import subprocess
import sys

import pytest

from idfsmec.cli import benchmark
from idfsmec.evaluation import Results
from idfsmec.evaluation.store import Store
from idfsmec.federated import summarise
from idfsmec.prediction import fit_model, save_model
from tests.evaluation.cohorts import make_cohort

PROGRAM = """
import json, sys
from idfsmec.cli import app
for words in json.loads(sys.argv[1]):
    app(words, standalone_mode=False)
    names = [name.split(".") for name in sys.modules]
    print(json.dumps(sorted({name[1] for name in names if name[0] == "idfsmec" and name[1:]})))
"""


def loaded(folder, *commands):
    """Run commands in a process of their own; return the subpackages loaded after each."""
    words = json.dumps([list(map(str, command)) for command in commands])
    command = [sys.executable, "-c", PROGRAM, words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return [set(json.loads(line)) for line in done.stdout.splitlines() if line.startswith('["')]


@pytest.fixture
def table(tmp_path):
    return make_cohort(12, 2).write(tmp_path / "clinic.parquet")


def test_select_loads_nothing_of_pages_benchmarks_and_only_for_sums_what_adds_them_up(
    table, tmp_path
):
    summary = summarise(make_cohort()).write(tmp_path / "clinic.summary")
    names, names_for_sums = loaded(
        tmp_path, ["select", table, "--resamples", 4], ["select", summary, "--force"]
    )
    assert "selection" in names
    assert not names & {"evaluation", "audit", "report", "federated"}
    assert "federated" in names_for_sums
    assert not names_for_sums & {"evaluation", "audit", "report"}


def test_predict_loads_pages_only_when_they_are_asked_for(table, tmp_path):
    model = save_model(fit_model(make_cohort(12, 2)), tmp_path / "model.skops")
    predict = ["predict", model, table]
    names, with_pages = loaded(tmp_path, predict, [*predict, "--pages", "pages", "--force"])
    assert not names & {"evaluation", "audit", "report", "federated"}
    assert "report" in with_pages


@pytest.mark.usefixtures("empty_figure_files")
def test_a_benchmark_opens_its_store_once_and_parses_once_what_has_not_changed(
    table, tmp_path, monkeypatch
):
    calls = []
    open_store, parse = Store._open, Results._parse.__func__

    def count_open(store, *args):
        calls.append("open")
        return open_store(store, *args)

    def count_parse(cls, store):
        calls.append("parse")
        return parse(cls, store)

    monkeypatch.setattr(Store, "_open", count_open)
    monkeypatch.setattr(Results, "_parse", classmethod(count_parse))
    settings = {"methods": ["ANOVA F"], "rates": [0.0], "k": [2], "folds": 2, "resamples": 2}
    settings |= {"experiment": ["accuracy", "imputation", "audit"], "jobs": 1}
    benchmark(table, tmp_path / "out", **settings)
    assert calls.count("open") == 1
    calls.clear()
    benchmark(table, tmp_path / "out", **settings)  # nothing is left to do
    assert calls == ["open", "parse"]
