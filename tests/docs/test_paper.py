"""The paper for JOSS: what its tool needs is there, and every source is cited."""

import re
from datetime import datetime
from pathlib import Path

import pytest
import typer

from idfsmec import cli

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "paper" / "paper.md").read_text("utf-8")
_, HEAD, BODY = TEXT.split("---\n", 2)
META = yaml.safe_load(HEAD)
#: The sections that JOSS asks for (joss.readthedocs.io, November 2026).
SECTIONS = [
    "Summary", "Statement of need", "State of the field", "Software design",
    "Research impact statement", "AI usage disclosure", "Acknowledgements", "References",
]  # fmt: skip


def test_the_head_has_what_the_journal_asks_for():
    assert set(META) == {"title", "tags", "authors", "affiliations", "date", "bibliography"}
    places = {place["index"] for place in META["affiliations"]}
    for author in META["authors"]:
        assert author["name"]
        assert re.fullmatch(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]", author["orcid"])
        assert {int(index) for index in str(author["affiliation"]).split(",")} <= places
    assert datetime.strptime(META["date"], "%d %B %Y").year >= 2026
    assert (ROOT / "paper" / META["bibliography"]).is_file()


def test_the_sections_are_there_in_their_order():
    headings = re.findall(r"^# (.+)$", BODY, flags=re.MULTILINE)
    assert [name for name in headings if name in SECTIONS] == SECTIONS


def test_the_length_is_within_the_limits():
    assert 750 <= len(BODY.split()) <= 1750


def test_every_source_is_cited_and_has_an_address():
    library = (ROOT / "paper" / META["bibliography"]).read_text("utf-8")
    entries = re.split(r"^@", library, flags=re.MULTILINE)
    sources = {re.match(r"\w+\{(\w+),", entry)[1]: entry for entry in entries[1:]}
    assert set(re.findall(r"@(\w+)", BODY)) == set(sources)
    for name, entry in sources.items():
        assert re.search(r"\b(doi|url) = ", entry), name
        assert all(f"  {field} = " in entry for field in ("author", "title", "year")), name


def test_the_readme_shows_every_command_in_few_words():
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = typer.main.get_command(cli.app).commands
    assert len(readme.split()) <= 600
    assert set(commands) == set(re.findall(r"^idfsmec (\w+)", readme, flags=re.MULTILINE))
