import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.evaluation import Results
from idfsmec.table import FeatureTable

runner = CliRunner()
module = sys.modules["idfsmec.cli.demo"]  # idfsmec.cli.demo itself is the function


@pytest.fixture
def tiny(monkeypatch):
    """The quick demo with as little as shows that every step is taken."""
    size = module.Size(
        n_subjects=8,
        seconds=20.0,
        rates=(0.3,),
        n_splits=2,
        ks=(5,),
        methods=("IDFS-MEC", "ANOVA F"),
    )
    monkeypatch.setattr(module, "QUICK", size)


def test_the_demo_goes_from_a_cohort_to_the_report(tiny, tmp_path):
    result = runner.invoke(app, ["demo", "--quick", "--jobs", "1", "--out", str(tmp_path / "d")])
    assert result.exit_code == 0, result.output
    table = FeatureTable.read(tmp_path / "d" / "cohort.parquet")
    assert len(table.channels) == 64
    assert not table.observed.to_numpy().all()
    assert len(pd.read_csv(tmp_path / "d" / "ranking.csv")) == 64 * 18
    results = Results.read(tmp_path / "d")
    assert set(results.scores["method"]) == {"IDFS-MEC", "ANOVA F"}
    assert (tmp_path / "d" / "report.html").stat().st_size > 10_000
    assert "report.html" in result.output
    found = results.resampling["cohort"]
    assert (found["n_resamples"], len(found["frequency"])) == (100, 64 * 18)

    again = runner.invoke(app, ["demo", "--quick", "--out", str(tmp_path / "d")])
    assert again.exit_code == 2
    assert "--force" in again.stderr
