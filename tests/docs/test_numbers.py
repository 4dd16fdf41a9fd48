"""Timings: page, numbers and README agree, and the page keeps its sections."""

import ast
import importlib.util
import json
import re
from pathlib import Path

import pytest
from benchmarks.quality import guarantees
from benchmarks.record import Section, page_sections, tables, write_json, write_markdown

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "benchmarks" / "results" / "latest.md"
NUMBERS = ROOT / "benchmarks" / "results" / "latest.json"
HERE = {"date": "2026-01-02", "processor": "abacus", "cores": "3"}


def test_the_readme_states_the_measured_seconds_of_a_ranking():
    kept = json.loads(NUMBERS.read_text("utf-8"))["benchmarks"]["selection"]["tables"]
    rows = next(table["rows"] for table in kept if table["title"].startswith("Against peers, 128"))
    seconds = {row["program"]: row["seconds (median)"] for row in rows}["IDFSMEC"]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    stated = re.search(
        r"128 channels x 18 features x 2000 samples are ranked in (.+?) on two cores", readme
    )
    words = {"a third of a second": 1 / 3, "half a second": 0.5, "a second": 1.0}
    assert words[stated[1]] == pytest.approx(seconds, rel=0.3)


def test_page_and_numbers_are_of_the_same_runs():
    sections = page_sections(PAGE.read_text("utf-8"))
    kept = json.loads(NUMBERS.read_text("utf-8"))["benchmarks"]
    assert list(sections) == list(kept)
    for name, text in sections.items():
        shown, written = tables(text), kept[name]["tables"]
        assert [one["rows"] for one in shown] == [one["rows"] for one in written], name
        assert kept[name]["machine"]["date"] in text
        assert f"cores {kept[name]['machine']['cores']}" in text


def test_one_benchmark_leaves_the_others_where_they_are(tmp_path):
    page, numbers = tmp_path / "page.md", tmp_path / "numbers.json"
    old = [Section(name, f"## {name} today\n\n| a | b |\n| --- | --- |\n| 1 | x |\n", 2.0, HERE)
           for name in ("grid", "selection")]  # fmt: skip
    for write, path in ((write_markdown, page), (write_json, numbers)):
        write(path, old)
        before = path.read_text("utf-8")
        write(path, [Section("grid", "nothing", 1.0, HERE | {"date": "2026-03-04"})])
        write(path, [old[0]])
        assert path.read_text("utf-8") == before
    sections = page_sections(page.read_text("utf-8"))
    assert list(sections) == ["selection", "grid"]  # in the order of all timings
    assert "2 s on 2026-01-02 (processor abacus; cores 3)" in sections["grid"]
    assert tables(sections["grid"]) == [{"title": "grid today", "rows": [{"a": 1.0, "b": "x"}]}]


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.stem)
def test_what_benchmarks_import_of_the_package_is_there(path):
    asked = [
        (one.module, name.name)
        for one in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("idfsmec")
        for name in one.names
    ]
    assert [one for one in asked if not found(*one)] == []


def found(module, name):
    """Whether a module has the name, as its own or as a module below it."""
    own = importlib.import_module(module)
    return hasattr(own, name) or importlib.util.find_spec(f"{module}.{name}") is not None


def test_the_page_of_guarantees_has_the_stored_numbers():
    text, kept = guarantees.PAGE.read_text("utf-8"), json.loads(guarantees.RESULTS.read_text())
    rows = text.partition(guarantees.BEGIN)[2].partition(guarantees.END)[0]
    assert rows.strip() == guarantees.page_rows(kept)
    assert len(re.findall(r"[A-Za-z][\w'-]*", text)) <= 700  # words, not numbers
    for name, part in kept.items():
        assert part["command"].startswith("python -m benchmarks.quality.")
        assert f"{part['date']}, `--parts {name}`, {part['studies']} studies" in rows


def test_a_row_of_guarantees_says_what_was_measured():
    measured = {"probability": {"mean": 0.96123, "worst": 0.9, "width": 0.447}}
    results = {}
    guarantees.store(results, "train", measured | {"AUC": {}, "balanced accuracy": {}}, 7)
    with pytest.raises(KeyError):  # nothing is printed that was not measured
        guarantees.page_rows(results)
    for name in ("AUC", "balanced accuracy"):
        above = {"above chance": 0.02, "above chance, worst": 0.03}
        results["train"]["measured"][name] = {"mean": 0.95, "worst": 0.94, "width": 0.3, **above}
    assert "| CI of a participant's probability, width 0.45 | 0.95 | 0.961 | 0.900 |" in (
        guarantees.page_rows(results)
    )
