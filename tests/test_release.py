"""What a release must agree on: one version, one list of dependencies, files that others read."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import idfsmec

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_there_is_one_version():
    assert yaml.safe_load(read("CITATION.cff"))["version"] == VERSION
    assert yaml.safe_load(read("recipe/recipe.yaml"))["context"]["version"] == VERSION
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


#: Names under which conda knows distributions; those of MNE and Matplotlib leave out what draws.
CONDA_NAMES = {"mne": "mne-base", "matplotlib": "matplotlib-base", "lazy-loader": "lazy_loader"}


def test_conda_installs_the_dependencies_of_the_project():
    pairs = [
        re.fullmatch(r"([\w-]+)(>=[\d.]+)", line).groups() for line in PROJECT["dependencies"]
    ]
    wanted = {f"{CONDA_NAMES.get(name, name)} {bound}" for name, bound in pairs}
    recipe = yaml.safe_load(read("recipe/recipe.yaml"))
    run = set(recipe["requirements"]["run"]) - {"python >=${{ python_min }}"}
    assert run == wanted
    assert recipe["context"]["python_min"] == PROJECT["requires-python"].removeprefix(">=")
    (command,) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(command)]
    listed = yaml.safe_load(read("environment.yml"))["dependencies"]
    assert {name for name in listed if isinstance(name, str)} >= wanted
    assert {"pip": ["."]} in listed


def test_the_image_has_the_readers_and_does_not_run_as_root():
    lines = read("Dockerfile").splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 1000"]
    assert 'ENTRYPOINT ["idfsmec"]' in lines
    extras = set(re.search(r'"\.\[([\w,]+)\]"', read("Dockerfile"))[1].split(","))
    # PyTorch is for machines that have a GPU.
    others = {"all", "dev", "docs", "peers", "gpu"}
    assert extras == set(PROJECT["optional-dependencies"]) - others


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("citation-file-format", "CITATION.cff"),
        ("readthedocs", ".readthedocs.yaml"),
        ("github-workflows", ".github/workflows/ci.yml"),
    ],
)
def test_files_that_services_read_follow_their_schema(schema, file):
    check = pytest.importorskip("check_jsonschema").main
    arguments = ["--builtin-schema", f"vendor.{schema}", str(ROOT / file)]
    assert check(arguments, standalone_mode=False) == 0
