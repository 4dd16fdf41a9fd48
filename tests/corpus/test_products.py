"""Every damaged product ends with exit code 0, 1 or 2 and one clear line."""

import re

import pytest
from typer.testing import CliRunner

from idfsmec.cli import app

from .case import ACCEPTED, REFUSED
from .products import CASES

pytestmark = pytest.mark.long

OUTPUTS = {"features": "table.parquet", "select": "ranking.csv", "predict": "predictions.csv"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_damaged_product_is_named_in_one_line(case, tmp_path):
    folder = tmp_path / "input"
    folder.mkdir()
    arguments = case.build(folder)
    output = tmp_path / "out" / OUTPUTS.get(arguments[0], "none")
    if arguments[0] in OUTPUTS:
        arguments += ["-o", str(output)]
    result = CliRunner().invoke(app, arguments)
    printed = result.stdout + "\n" + result.stderr
    assert "Traceback" not in printed
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in {ACCEPTED: (0,), REFUSED: (2,)}.get(case.ending, (0, 1, 2)), printed
    if result.exit_code == 2:
        assert len(re.findall("^error: ", printed, re.MULTILINE)) == 1, printed
        assert not output.exists()
        said = " ".join(printed.split())
        assert all(words in said for words in case.said), said


def test_every_product_has_its_name():
    assert len({case.name for case in CASES}) == len(CASES)
