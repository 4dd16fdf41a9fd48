"""No summary is written in this version; a folder of tables is ranked by its sums."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import FeatureTable
from idfsmec.cli import app
from tests.summaries.test_summaries import by_person, cohort

pytestmark = pytest.mark.filterwarnings("ignore:Missing channels are associated with the label")
runner = CliRunner()


def run(*words):
    return runner.invoke(app, [str(word) for word in words])


@pytest.fixture
def hospitals(tmp_path):
    """Tables of three hospitals, and the table of all."""
    table = cohort(120, missing=0.1)
    site = {name: min(at // 30, 2) for at, name in enumerate(table.subjects.unique())}
    paths = []
    for name, own in zip("abc", by_person(table, site), strict=True):
        paths.append(own.write(tmp_path / f"{name}.parquet"))
    return table, paths


def test_a_folder_of_files_is_one_table(hospitals, tmp_path):
    _, paths = hospitals
    for number, path in enumerate(paths):
        folder = tmp_path / "data" / f"part{number}"
        folder.mkdir(parents=True)
        path.rename(folder / "x.parquet")
    rankings = []
    FeatureTable.concat(
        [FeatureTable.read(one) for one in sorted((tmp_path / "data").rglob("*.parquet"))]
    ).write(tmp_path / "all.parquet")
    for words in ([tmp_path / "data"], [tmp_path / "all.parquet"]):
        done = run("select", *words, "-o", tmp_path / "r.csv", "--force")
        assert done.exit_code == 0, done.output
        rankings.append(pd.read_csv(tmp_path / "r.csv"))
    by_sums, by_rows = rankings
    pd.testing.assert_frame_equal(by_sums, by_rows[list(by_sums)], rtol=0, atol=1e-9)


def test_a_folder_whose_files_differ_is_refused(hospitals, tmp_path):
    _, (a, b, _) = hospitals
    FeatureTable.read(b).select_channels(["F3"]).write(b)
    (tmp_path / "data").mkdir()
    for path in (a, b):
        path.rename(tmp_path / "data" / path.name)
    refused = run("select", tmp_path / "data")
    assert refused.exit_code == 2
    assert "b.parquet: has other columns than a.parquet" in " ".join(refused.stderr.split())


def test_no_summary_is_written_and_the_reason_is_said(hospitals, tmp_path):
    _, (a, *_) = hospitals
    for more in ((), ("--describe",), ("--force",)):
        refused = run("summarise", a, "-o", tmp_path / "a.summary", *more)
        assert refused.exit_code == 2
        said = " ".join(refused.stderr.split())
        assert "a.summary: is not written" in said
        assert "a summary file of this version can reveal single participants" in said
    assert not (tmp_path / "a.summary").exists()


def test_what_cannot_be_is_refused_in_one_line(tmp_path):
    summary = tmp_path / "a.summary"
    summary.write_bytes(b"PK nothing")
    assert run("summarise", summary).exit_code == 2
    assert "not a readable summary" in run("summarise", summary, "--describe").stderr
    by_site = run("select", summary, "--tune", "--folds", "site")
    assert "needs the rows" in by_site.stderr
    assert run("select", summary, "--tune", "--harmonize").exit_code == 2
    (tmp_path / "empty").mkdir()
    assert "no .parquet file" in run("select", tmp_path / "empty").stderr
