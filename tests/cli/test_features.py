"""The command: exit codes, one clear line per error, and a run that survives a kill."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import mne
import numpy as np
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.features import extract_table
from idfsmec.recordings import read_manifest, simulate_cohort
from idfsmec.table import FeatureTable
from tests.paper.releases import modma3_counts

pytestmark = pytest.mark.slow

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
    assert "from 4 participants" in said
    assert "marked bad: 6 channel epochs (most: C3 3, C4 3)" in said


def test_options_and_a_settings_file_reach_the_table(study, output, tmp_path):
    config = tmp_path / "settings.toml"
    code, said, error = run("--write-config", config, "--epoch", 5, "--features", "hoc,ap")
    assert code == 0, error
    assert str(config) in said
    text = config.read_text().replace("overlap = 0.0", "overlap = 2.5")
    text = text.replace("detect = true", "detect = false").replace(
        "hoc_orders = 1", "hoc_orders = 3"
    )
    config.write_text(text[: text.index("[bands]")] + "[bands]\nlow = [1, 8]\nhigh = [8, 30]\n")
    code, _, error = run(study, "-o", output, "--config", config)
    assert code == 0, error
    table = FeatureTable.read(output)
    assert table.features == ["hoc_1", "hoc_2", "hoc_3", "ap_low", "ap_high"]
    assert (table.info["overlap"], table.info["detect"]) == (2.5, False)
    assert (table.subjects == "s01").sum() == 15
    code, _, error = run(study, "-o", output, "--config", config, "--epoch", 10, "--force")
    assert code == 0, error
    assert FeatureTable.read(output).info["epoch"] == 10


def test_what_a_recording_cannot_give_ends_with_two(study, output):
    code, _, said = run(study, "-o", output, "--epoch", 1)
    assert code == 2
    assert "Feature 'nsi' compares segments of 1 s" in said
    assert not output.exists()


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
    assert "If two participants are one person, give them one name." in said


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
    code, said, _ = run("modma3", "--data", tmp_path, "-o", output, "--on-error", "skip")
    assert code == 0
    table = FeatureTable.read(output)
    assert set(table.subjects) == {"02010002", "02020008", "02020022"}
    observed = table.observed.groupby(table.subjects).all()
    assert observed.sum(axis=1).tolist() == [3, 3, 2]
    assert not observed.loc["02020022", "Fp1"]
    assert "skipped 1 of 4 recordings" in said
    assert "02010011_still.txt: no epoch has any channel left" in said


KILLED_AFTER_TWO = """
import os, signal, sys
from idfsmec.features import extract_to_file
from idfsmec.recordings import read_manifest

def die(event):
    if event.done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

extract_to_file(read_manifest(sys.argv[1]), sys.argv[2], progress=die)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_a_killed_run_is_resumed_and_gives_the_same_table(study, output):
    environment = os.environ | {"PYTHONPATH": str(SOURCE_TREE)}
    killed = [sys.executable, "-c", KILLED_AFTER_TWO, str(study), str(output)]
    assert subprocess.run(killed, env=environment, check=False).returncode == -signal.SIGKILL
    assert not output.exists()
    parts = output.with_name(f".{output.name}.parts")
    assert len(list(parts.glob("*.npz"))) == 2

    code, said, error = run(study, "-o", output)
    assert code == 0, error
    assert "2 of 4 recordings were finished" in said
    assert not parts.exists()
    uninterrupted = output.with_name("other.parquet")
    assert run(study, "-o", uninterrupted)[0] == 0
    assert output.read_bytes() == uninterrupted.read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_devices_are_skipped_and_never_waited_for(study, output):
    folder = study.parent
    os.mkfifo(folder / "pipe.edf")
    header = (folder / "s03.vhdr").read_text()
    (folder / "linked.vhdr").write_text(header.replace("s03.eeg", "pipe.edf"))
    (folder / "endless.vhdr").write_text(header.replace("s03.eeg", "/dev/zero"))
    (folder / "device.edf").symlink_to("/dev/zero")
    names = ["pipe.edf", "linked.vhdr", "endless.vhdr", "device.edf"]
    lines = [f"{name},{name.split('.')[0]},MDD," for name in names]
    study.write_text(study.read_text() + "\n".join(lines) + "\n")
    code, _, error = run(study, "-o", output)
    assert code == 2
    assert "pipe.edf: is a pipe or a device" in error
    code, said, error = run(study, "-o", output, "--on-error", "skip")
    assert code == 0, error
    for name in names:
        assert f"{name}: " in said
    assert said.count("is a pipe or a device") == 4
    assert set(FeatureTable.read(output).subjects) == {"s01", "s02", "s03", "s04"}


def test_a_recording_that_loses_all_epochs_ends_with_one_unless_skipped(study, output):
    raw = simulate_cohort(1, 3, duration=20, random_state=0).recordings[0].load()
    raw.set_annotations(mne.Annotations([0.0], [20.0], ["BAD all"]))
    raw.save(study.with_name("empty_raw.fif"), verbose="error")
    study.write_text(study.read_text() + "empty_raw.fif,s05,MDD,\n")
    code, said, error = run(study, "-o", output)
    assert code == 1
    assert "empty_raw.fif: no epoch has any channel left" in said
    assert "--on-error skip" in error
    assert len(FeatureTable.read(output)) == 12
    assert run(study, "-o", output, "--force", "--on-error", "skip")[0] == 0


def test_a_second_copy_is_not_called_resumed(study, output):
    study.write_text(study.read_text() + "s01.edf,s01,HC,\n")
    code, said, _ = run(study, "-o", output)
    assert code == 0
    assert "resumed" not in said
