"""``idfsmec report``: where it writes, what it refuses, how it says so."""

import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from tests.report.make_results import simulate, write_results

pytestmark = pytest.mark.slow

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("cli"), {"t": simulate()}, ("cost",))


def test_a_page_and_figures_are_written(folder):
    result = runner.invoke(app, ["report", str(folder), "--force"])
    assert result.exit_code == 0
    assert str(folder / "report.html") in result.stdout
    assert (folder / "figures" / "cost.png").exists()


def test_a_page_is_not_overwritten_without_force(folder):
    (folder / "report.html").write_text("mine")
    result = runner.invoke(app, ["report", str(folder)])
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert (folder / "report.html").read_text() == "mine"


def test_a_folder_without_results_ends_with_one_line_and_code_2(tmp_path):
    result = runner.invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert str(tmp_path) in result.stderr


def test_help_shows_an_example():
    result = runner.invoke(app, ["report", "--help"])
    assert "idfsmec report results" in result.output
