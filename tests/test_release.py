"""What a release must agree on: one version everywhere, one workflow that can be tried here."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import idfsmec

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_there_is_one_version():
    assert re.search(r"^version: (.+)$", read("CITATION.cff"), re.MULTILINE)[1] == VERSION
    assert idfsmec.__version__ == VERSION
    numbers = re.findall(r"^## \[?(\d+\.\d+\.\d+)", read("CHANGELOG.md"), re.MULTILINE)
    # The version to come has its lines under "Unreleased" until it is released.
    assert "## Unreleased" in read("CHANGELOG.md") or numbers[0] == VERSION
    assert VERSION not in numbers[1:]


def test_a_tag_on_this_revision_is_the_version():
    found = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    if found.returncode:
        pytest.skip("not a clone")
    assert {tag for tag in found.stdout.split() if tag.startswith("v")} <= {f"v{VERSION}"}


def test_the_workflow_runs_nothing_but_targets_of_the_makefile():
    listed = subprocess.run(
        [sys.executable, ROOT / ".ci" / "try"], capture_output=True, text=True, check=True
    ).stdout
    steps = [step for line in listed.splitlines() for step in line.split(": ", 1)[1].split("; ")]
    assert steps
    targets = set(re.findall(r"^([a-z][a-z-]*):", read("Makefile"), re.MULTILINE))
    assert {step.removeprefix("make ") for step in steps} <= targets
    assert read(".github/workflows/ci.yml").count("- run: ") == len(steps)


def test_the_workflow_tests_every_python_that_we_promise():
    promised = {
        one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)
    }
    matrix = re.search(r"python-version: \[(.+)\]", read(".github/workflows/ci.yml"))[1]
    assert set(re.findall(r"3\.\d+", matrix)) == promised
