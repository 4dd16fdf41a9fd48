"""The command: exit codes, one clear line per error, and a run that survives a kill."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.features import extract_table
from idfsmec.recordings import read_manifest
from idfsmec.table import FeatureTable
from tests.paper.releases import modma3_counts

SOURCE_TREE = Path(__file__).parents[2] / "src"


def run(*arguments):
    result = CliRunner().invoke(app, ["features", *map(str, arguments)])
    return result.exit_code, " ".join(result.stdout.split()), " ".join(result.stderr.split())


@pytest.fixture
def output(tmp_path):
    return tmp_path / "table.parquet"


def test_a_manifest_becomes_a_table_with_a_summary(study, output):
    code, said, _ = run(study, "-o", output)
    assert code == 0
    table = FeatureTable.read(output)
    assert table.equals(extract_table(read_manifest(study)).table)
    assert "subjects 4" in said
    assert "marked bad: 6 channel epochs (most: C3 3, C4 3)" in said


def test_options_reach_the_table(study, output):
    code, _, said = run(
        *(study, "-o", output, "--epoch", 5, "--overlap", 2.5, "--no-detect"),
        *("--band", "low=1-8", "--band", "high=8-30", "--hoc-orders", 3),
        *("--feature", "hoc", "--feature", "ap", "--band-pass", 0.5, 40),
    )
    assert code == 0, said
    table = FeatureTable.read(output)
    assert table.features == ["hoc_1", "hoc_2", "hoc_3", "ap_low", "ap_high"]
    assert table.info["overlap"] == 2.5
    assert table.info["band_pass"] == [0.5, 40.0]
    assert table.info["detect"] is False
    assert (table.subjects == "s01").sum() == 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epoch", 0], "length of an epoch must be positive"),
        (["--band", "alpha:8-13"], "write a band as NAME=LOWER-UPPER"),
        (["--feature", "hjorth"], "no feature 'hjorth'"),
        (["--labels", "bdi13"], "has no meaning for a manifest"),
        (["--epoch", 1], "error: Feature 'nsi' compares segments of 1 s"),
        (["--band", "slow=0.01-0.05"], "error: Band 'slow'"),
        (["--jobs", 0], "--jobs 0: give 1 or more"),
        (["--on-error", "ignore"], "ignore"),
    ],
)
def test_bad_usage_ends_with_two_and_says_why(study, output, arguments, message):
    code, _, said = run(study, "-o", output, *arguments)
    assert code == 2
    assert message in said
    assert "Traceback" not in said
    assert not output.exists()


def test_a_missing_manifest_ends_with_two(output):
    code, _, said = run("nothing.csv", "-o", output)
    assert code == 2
    assert "nothing.csv" in said


def test_an_existing_table_is_replaced_only_by_force(study, output):
    output.write_text("precious")
    code, _, said = run(study, "-o", output)
    assert code == 2
    assert "--force" in said
    assert output.read_text() == "precious"
    assert run(study, "-o", output, "--force")[0] == 0
    assert len(FeatureTable.read(output)) == 12


def test_a_failing_file_is_named_and_the_others_go_on_if_asked(study, output, spoil):
    spoil(study.with_name("s03.vhdr"))
    code, _, said = run(study, "-o", output)
    assert code == 2
    assert "s03.vhdr" in said
    assert not output.exists()
    code, said, _ = run(study, "-o", output, "--on-error", "skip")
    assert code == 0
    assert "skipped 1 of 4 recordings" in said
    assert "s03.vhdr" in said
    assert set(FeatureTable.read(output).subjects) == {"s01", "s02", "s04"}


def test_a_file_that_is_not_there_is_skipped_if_asked(study, output):
    study.with_name("s03.vhdr").unlink()
    code, _, said = run(study, "-o", output)
    assert code == 2
    assert "line 4, column 'path': there is no" in said
    code, said, _ = run(study, "-o", output, "--on-error", "skip")
    assert code == 0
    assert "s03.vhdr: there is no such file." in said
    assert set(FeatureTable.read(output).subjects) == {"s01", "s02", "s04"}


def test_one_recording_for_two_subjects_is_refused(study, output):
    study.write_text(study.read_text() + "s01.edf,s99,MDD,\n")
    code, _, said = run(study, "-o", output)
    assert code == 2
    assert "s99" in said
    assert "accept them with --allow-duplicates if" in said
    code, _, said = run(study, "-o", output, "--allow-duplicates")
    assert code == 0
    assert "more than once" in said
    assert len(FeatureTable.read(output)) == 16


def test_modma_goes_in_by_name_and_its_bad_recordings_are_found(tmp_path, output):
    # As released: counts with a large offset, and fifty times more mains than alpha; one
    # recording is bad throughout (1e8 times the power of the others), one in Fp1 only.
    folder = tmp_path / "EEG_3channels_resting_lanzhou_2015"
    folder.mkdir()
    for seed, subject in enumerate(["02010002", "02010011", "02020008", "02020022"]):
        counts = modma3_counts(seed, seconds=40).astype(float)
        if subject == "02010011":
            counts *= 1e4
        if subject == "02020022":
            counts[:, 0] *= 1e4
        np.savetxt(folder / f"{subject}_still.txt", counts, fmt="%d")
    code, said, _ = run("modma3", "--data", tmp_path, "-o", output)
    assert code == 0
    table = FeatureTable.read(output)
    assert set(table.subjects) == {"02010002", "02020008", "02020022"}
    observed = table.observed.groupby(table.subjects).all()
    assert observed.sum(axis=1).tolist() == [3, 3, 2]
    assert not observed.loc["02020022", "Fp1"]
    assert "skipped 1 of 4 recordings" in said
    assert "02010011_still.txt: no epoch has any channel left" in said


def test_help_shows_an_example():
    code, said, _ = run("--help")
    assert code == 0
    assert "idfsmec features study.csv -o table.parquet" in said


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_killed_run_is_resumed_and_gives_the_same_table(study, output):
    # The third recording is a pipe. Opening it waits for the program to get there, and then the
    # program waits for the pipe: killed at a known moment, with two recordings finished.
    header, first, second, third, fourth = study.read_text().splitlines()
    study.write_text("\n".join([header, first, second, fourth, third]))
    pipe = study.with_name("s04.edf")
    whole = pipe.rename(study.with_name("whole"))
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "idfsmec", "features", str(study), "-o", str(output)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE_TREE)}
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        unblock = threading.Thread(target=_open_once_over, args=(process, pipe), daemon=True)
        unblock.start()
        with pipe.open("wb"):
            os.killpg(process.pid, signal.SIGKILL)
            unblock.join()
    assert process.returncode == -signal.SIGKILL
    assert not output.exists()
    parts = output.with_name(f".{output.name}.parts")
    assert len(list(parts.glob("*.npz"))) == 2

    pipe.unlink()
    whole.rename(pipe)
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "2 of 4 recordings were finished" in again.stdout
    assert not parts.exists()
    uninterrupted = output.with_name("other.parquet")
    assert run(study, "-o", uninterrupted)[0] == 0
    assert output.read_bytes() == uninterrupted.read_bytes()


def _open_once_over(process, pipe):
    """Open the reading end when the program is gone, so that a crash cannot hang the test."""
    process.wait()
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
