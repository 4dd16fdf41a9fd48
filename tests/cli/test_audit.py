"""``idfsmec audit``: the verdict on the terminal, a page, a sheet, and going on after a stop."""

import pytest
from typer.testing import CliRunner

from idfsmec import cli
from idfsmec.cli import app
from tests.audit.cohorts import audited

pytestmark = pytest.mark.slow

runner = CliRunner()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return audited(20, device=1.0).write(tmp_path_factory.mktemp("audit") / "study.parquet")


def run(*arguments):
    return runner.invoke(app, ["audit", *map(str, arguments)], terminal_width=200)


def test_it_says_its_verdict_and_writes_page_and_sheet(table, tmp_path):
    asked = [table, "--out", tmp_path, "--n-splits", 4, "--jobs", 1]
    found = run(*asked, "--derivative", tmp_path / "bids")
    assert found.exit_code == 0, found.output
    assert "Acquisition separates the groups as well as the EEG does" in found.output
    page = (tmp_path / "audit.html").read_text("utf-8")
    assert 'class="verdict red"' in page
    assert "line noise" in page
    sheet = (tmp_path / "reporting.md").read_text("utf-8")
    for guideline in ("TRIPOD+AI", "REFORMS", "COBIDAS-MEEG"):
        assert guideline in sheet
    assert "20 participants" in sheet
    assert "- [ ] " in sheet
    assert (tmp_path / "bids" / "participants.tsv").exists()
    again = cli.audit(table, tmp_path, n_splits=4, jobs=1, quiet=True)
    assert again.level == "red"


def test_another_table_in_the_same_folder_is_refused_unless_forced(table, tmp_path):
    cli.audit(table, tmp_path, n_splits=4, jobs=1, quiet=True)
    other = audited(20, seed=5).write(tmp_path / "study.parquet")
    refused = run(other, "--out", tmp_path, "--n-splits", 4, "--jobs", 1)
    assert refused.exit_code == 2
    assert "--force" in refused.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--n-splits", "1"], "n-splits"),
        (["--also", "bdi"], "bdi"),
        (["--seed", "-1"], "seed"),
        (["--folds", "site"], "use folds by subject"),
    ],
)
def test_wrong_usage_ends_in_one_line(table, tmp_path, arguments, said):
    found = run(table, "--out", tmp_path, *arguments)
    assert found.exit_code == 2
    assert said in found.output
