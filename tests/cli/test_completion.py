"""What the Tab key offers."""

import pytest
from typer.testing import CliRunner

from idfsmec.cli import app

runner = CliRunner()


def tab(*words):
    """What a shell is given for the last word."""
    result = runner.invoke(
        app,
        [],
        prog_name="idfsmec",
        env={
            "_IDFSMEC_COMPLETE": "complete_bash",
            "COMP_WORDS": "idfsmec " + " ".join(words),
            "COMP_CWORD": str(len(words)),
        },
    )
    assert result.exit_code == 0, result.output
    return result.output.split("\n")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("be",), ["benchmark"]),
        (("benchmark", "t.csv", "--meth"), ["--methods"]),
        (("benchmark", "t.csv", "--methods", "R"), ["ReliefF", "RRCT", "RFS"]),
        (("benchmark", "t.csv", "--methods", "mRMR,CM"), ["mRMR,CMIM"]),
        (("benchmark", "t.csv", "--patterns", "random,re"), ["random,recording", "random,region"]),
        (("benchmark", "t.csv", "--experiment", "ab"), ["ablation"]),
        (("reproduce", "modma"), ["modma3", "modma128"]),
        (("reproduce", "modma3", "--methods", "IDF"), ["IDFS-MEC"]),
        (("features", "pred"), ["pred-d003"]),
        (("features", "pred-d003", "--labels", "bdi-"), ["bdi-above-13", "bdi-extremes"]),
        (("features", "m.csv", "--feature", "spec"), ["spectral_entropy"]),
        (("features", "pred-d003", "--condition", "eyes-o"), ["eyes-open"]),
    ],
)
def test_the_tab_key_offers(words, offered):
    assert [line for line in tab(*words) if line] == offered


def test_where_no_data_set_fits_the_shell_offers_files():
    assert set(tab("features", "study")) == {""}


def test_completion_is_installed_where_the_shell_looks(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = runner.invoke(app, ["--install-completion", "bash"], prog_name="idfsmec")
    assert result.exit_code == 0, result.output
    assert "idfsmec.sh" in (tmp_path / ".bashrc").read_text()
    script = next(tmp_path.rglob("idfsmec.sh")).read_text()
    assert "_IDFSMEC_COMPLETE=complete_bash" in script
