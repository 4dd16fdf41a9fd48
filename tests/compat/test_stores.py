"""A store of results of format version 1 (idfsmec 0.1) is refused in one line, and left alone.

It knew columns by the name of a table, so that a table made anew could rename old results. Never
write the file again: it is what users have on their disks.
"""

import hashlib
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import Results
from idfsmec.evaluation.store import Store

WRITTEN = Path(__file__).parent / "store_v1.sqlite"
DIGEST = "6a02f9d4720c1d7423954431ecad53c52c21e6a8b061c3db57cfbc6babfd3822"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(WRITTEN, tmp_path / "store.sqlite")
    return tmp_path


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_version_1_is_refused_with_the_fix_and_not_changed(folder, read_only):
    with pytest.raises(InputError, match=r"has format 1.*compute the results again"):
        Store(folder, read_only=read_only)
    with pytest.raises(InputError, match="in another folder"):
        Results.read(folder)
    assert (folder / "store.sqlite").read_bytes() == WRITTEN.read_bytes()


def test_a_report_of_it_ends_in_one_line(folder):
    result = CliRunner().invoke(app, ["report", str(folder)])
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert "has format 1" in result.stderr


def test_the_file_is_the_one_that_was_written():
    assert hashlib.sha256(WRITTEN.read_bytes()).hexdigest() == DIGEST
