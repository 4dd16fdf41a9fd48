"""A disk that is full and a folder that is closed: a clear error, and what was there stays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.evaluation.store import Store
from idfsmec.table import FeatureTable
from tests.corpus.case import study
from tests.corpus.sound import files_of_format

SOURCE_TREE = Path(__file__).parents[2] / "src"
# In a process of its own, in which no file may grow beyond a limit: what a full disk does.
FULL_DISK = """
import resource, signal, sys
limit = int(sys.argv.pop(1))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from idfsmec.cli import app
app()
"""
# Root is stopped by no permission, unless it gives up its powers; then all commands, one by one.
CLOSED_FOLDER = """
import ctypes, json, os, sys
from typer.testing import CliRunner
from idfsmec.cli import app
if os.geteuid() == 0:
    version, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(version, nothing) == 0
ended = [CliRunner().invoke(app, command) for command in json.loads(sys.argv[1])]
print(json.dumps([[one.exit_code, one.stderr] for one in ended]))
"""


@pytest.fixture
def small_study(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return study(folder, dict(files_of_format("fif")), "recording_raw.fif")


def run(command, limit=10**9):
    return run_program(FULL_DISK, str(limit), *command)


def run_program(*arguments):
    # Where nothing can be written, neither can what a measurement of coverage has to write.
    unmeasured = {name: value for name, value in os.environ.items() if "COV" not in name}
    return subprocess.run(
        [sys.executable, "-c", *arguments],
        env=unmeasured | {"PYTHONPATH": str(SOURCE_TREE)},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_a_full_disk_is_said_and_earlier_results_stay(small_study, tmp_path):
    output = tmp_path / "out" / "table.parquet"
    command = [*small_study, "-o", str(output)]
    assert CliRunner().invoke(app, command).exit_code == 0
    before = output.read_bytes()
    for limit in (1000, 4000):  # the parts do not fit; the parts fit, but the table does not
        failed = run([*command, "--force"], limit=limit)
        assert failed.returncode == 1, failed.stderr
        assert "File too large" in failed.stderr
        assert "table.parquet" in failed.stderr
        # NumPy 1 leaves an archive open, which complains after our words when it is swept up.
        told, *_ = failed.stderr.split("Exception ignored in: <function ZipFile.__del__")
        assert "Traceback" not in told, failed.stderr
        assert output.read_bytes() == before
        left = [path for path in output.parent.rglob("*") if path.is_file() and path != output]
        assert all(path.suffix == ".npz" for path in left)
    assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0
    assert output.read_bytes() == before
    assert list(output.parent.iterdir()) == [output]


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    table = FeatureTable.read(_written(tmp_path / "table.csv"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        table.select_channels(["Cz"]).write(tmp_path / "table.csv")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def _written(path):
    frame = {"Cz__a": [1.0, 2.0], "Fp1__a": [3.0, 4.0]}
    return FeatureTable(pd.DataFrame(frame), ["HC", "MDD"], ["s1", "s2"]).write(path)


def benchmark(table, out, methods):
    command = ["benchmark", str(table), "--out", str(out), "--methods", methods, "--quiet"]
    return [*command, "--rates", "0.1,0.3", "--k", "2", "--folds", "3", "--jobs", "1"]


@pytest.mark.long
def test_a_disk_that_fills_up_during_a_benchmark_is_said_and_nothing_finished_is_lost(
    small_table, tmp_path
):
    out = tmp_path / "out"
    assert CliRunner().invoke(app, benchmark(small_table, out, "ANOVA F")).exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    more = benchmark(small_table, out, "ANOVA F,random,IDFS-MEC")
    # The log of the store may not grow beyond a few entries.
    failed = run(more, limit=max(len(content) for content in before.values()))
    assert failed.returncode == 1, failed.stderr
    assert "store.sqlite: " in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr
    with Store(out) as store:
        n_kept = sum(done.experiment == "accuracy" for done in store.planned())
    assert 18 <= n_kept < 54  # three methods, two rates, three folds, three repeats
    kept = (out / "results.csv").read_bytes().splitlines()
    assert len(kept) == 1 + n_kept
    assert set(before["results.csv"].splitlines()) <= set(kept)
    assert len(pd.read_parquet(out / "selections.parquet")) == n_kept
    assert {path.name for path in out.iterdir()} == set(before)
    assert CliRunner().invoke(app, more).exit_code == 0
    with Store(out) as store:
        assert sum(done.experiment == "accuracy" for done in store.planned()) == 54


@pytest.mark.long
def test_a_closed_folder_is_named_by_every_command_and_stays_as_it_is(
    small_study, small_table, tmp_path
):
    closed = tmp_path / "closed"
    assert CliRunner().invoke(app, benchmark(small_table, closed, "random")).exit_code == 0
    before = {path.name: path.read_bytes() for path in closed.iterdir()}
    closed.chmod(0o555)
    commands = [
        [*small_study, "-o", str(closed / "table.parquet")],
        ["select", str(small_table), "-o", str(closed / "mine.csv")],
        benchmark(small_table, closed, "ANOVA F"),
        benchmark(small_table, closed / "deeper", "ANOVA F"),
        ["report", str(closed)],
    ]
    try:
        ran = run_program(CLOSED_FOLDER, json.dumps(commands))
    finally:
        closed.chmod(0o755)
    assert ran.returncode == 0, ran.stderr
    for code, said in json.loads(ran.stdout):
        assert code in (1, 2), said
        assert str(closed) in said
        assert "Traceback" not in said
    assert {path.name: path.read_bytes() for path in closed.iterdir()} == before


HOLD = """
import sys
from idfsmec.features import extract_to_file
from idfsmec.recordings import Recording

def wait():
    print("held", flush=True)
    sys.stdin.read()

extract_to_file([Recording("s", "HC", wait, "a file")], sys.argv[1])
"""


@pytest.mark.long
def test_two_runs_for_one_table_the_second_is_refused_and_a_kill_frees_it(small_study, tmp_path):
    output = tmp_path / "table.parquet"
    command = [*small_study, "-o", str(output)]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(output)],
        env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        assert first.stdout.readline() == b"held\n"
        refused = CliRunner().invoke(app, command)
        first.kill()
    assert refused.exit_code == 2
    assert f"another process is making {output}" in " ".join(refused.stderr.split())
    assert not output.exists()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert not output.with_name(".table.parquet.parts").exists()


def test_a_place_that_cannot_be_written_is_named(small_study, tmp_path):
    # A file where a folder should be: refused even for root, whom no permission stops.
    (tmp_path / "closed").write_text("not a folder")
    command = [*small_study, "-o", str(tmp_path / "closed" / "table.parquet")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code in (1, 2)
    assert "closed" in result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "closed").read_text() == "not a folder"


# A writer that is killed, or waits, just before its table gets its name.
HALF_WRITTEN = """
import os, signal, sys
import pandas as pd
from idfsmec.table import FeatureTable

def stop(*names):
    print("written", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()

os.replace = stop
FeatureTable(pd.DataFrame({"Cz__a": [1.0]}), ["HC"], ["s"]).write(sys.argv[1])
"""


@pytest.mark.long
def test_what_a_killed_writer_left_is_swept_up_and_what_a_living_one_writes_is_not(tmp_path):
    writers = []
    for state in ("killed", "living"):
        command = [sys.executable, "-c", HALF_WRITTEN, str(tmp_path / "table.parquet"), state]
        environment = os.environ | {"PYTHONPATH": str(SOURCE_TREE)}
        pipe = subprocess.PIPE
        writers.append(subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe))
        assert writers[-1].stdout.readline() == b"written\n"
    killed, living = writers
    killed.communicate()
    try:
        assert len(list(tmp_path.iterdir())) == 2
        _written(tmp_path / "table.parquet")
        left = [path for path in tmp_path.iterdir() if path.name != "table.parquet"]
        assert [f"-{living.pid}-" in path.name for path in left] == [True]
    finally:
        living.kill()
        living.communicate()


def test_a_disk_that_lets_nothing_be_deleted_does_not_hide_the_file_that_failed(
    tmp_path, monkeypatch
):
    def refuse(self, missing_ok=False):
        raise OSError(30, "Read-only file system", str(self))

    def fail(*args, **kwargs):
        raise OSError(30, "Read-only file system", "a name that nobody chose")

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match=r"Read-only file system: '.*table\.csv'$"):
        _written(tmp_path / "table.csv")
