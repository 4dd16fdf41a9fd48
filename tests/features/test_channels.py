"""Channels with a place on the scalp are used, others named; the reference is an option."""

import mne
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError, RecordingError
from idfsmec.features import FeatureSettings, extract_features, extract_recording, extract_table
from idfsmec.recordings import Recording, prepare_raw, simulate_cohort
from idfsmec.table import FeatureTable

NO_POPS = {"pop": np.inf}


@pytest.fixture
def raw():
    """19 channels of the scalp and two extras of the amplifier, as a clinic writes them."""
    cohort = simulate_cohort(1, 19, duration=30, detached=0, artifacts=False, random_state=3)
    raw = cohort.recordings[0].load()
    extras = raw.copy().pick(["Fp1", "Fp2", "O1"])
    extras.rename_channels({"Fp1": "EEG 23A-23R", "Fp2": "EEG 24A-24R", "O1": "EEG A2-A1"})
    raw.rename_channels({name: f"EEG {name}-LE" for name in raw.ch_names})
    return raw.add_channels([extras])


def test_what_has_no_place_on_the_scalp_is_not_used_and_named(raw):
    found = extract_recording(raw)
    assert len(found.channels) == 19
    assert found.dropped == {
        "EEG A2-A1": "ear or mastoid",
        "EEG 23A-23R": "no position on the scalp",
        "EEG 24A-24R": "no position on the scalp",
    }
    prepared = Recording("s", "HC", lambda: prepare_raw(raw), "mine")
    again = extract_recording(prepared)
    assert again.dropped == found.dropped
    assert again.X.equals(found.X)


def test_all_channels_are_used_when_asked(raw):
    found = extract_recording(raw, FeatureSettings(channels="all"))
    assert found.channels[-2:] == ["EEG 23A-23R", "EEG 24A-24R"]
    assert list(found.dropped) == ["EEG A2-A1"]


def test_channels_can_be_named_in_any_spelling(raw):
    settings = FeatureSettings(channels=["FP1", "T3", "EEG O2-LE", "24A-24R", "EEG 23A-23R"])
    found = extract_recording(raw, settings)
    assert sorted(found.channels) == ["EEG 23A-23R", "Fp1", "O2", "T7"]
    assert found.dropped["EEG Cz-LE"] == "not asked for"
    with pytest.raises(RecordingError, match=r"none of the channels Iz is in it\. It has Fp1"):
        extract_recording(raw, FeatureSettings(channels=["Iz"]))


def test_epochs_and_arrays_choose_alike(raw):
    epochs = mne.make_fixed_length_epochs(raw, 10.0, preload=True, verbose="error")
    assert extract_recording(epochs).channels == extract_recording(raw).channels
    data = np.random.default_rng(0).standard_normal((2, 3, 2500))
    few = FeatureSettings(channels=["Fp1", "x"])
    found = extract_recording(data, few, sfreq=250, ch_names=["Fp1", "x", "y"])
    assert found.channels == ["Fp1", "x"]
    everything = extract_features(data, sfreq=250, ch_names=["Fp1", "x", "y"])
    assert found.X.equals(everything[found.X.columns])


@pytest.mark.parametrize("names", [[f"X{i}" for i in range(19)], ["Fp1", *map(str, range(18))]])
def test_a_cap_that_no_montage_knows_keeps_its_channels(raw, names):
    raw.drop_channels(raw.ch_names[19:])
    raw.rename_channels(dict(zip(raw.ch_names, names, strict=True)))
    assert extract_recording(raw).channels == names


def test_the_average_is_over_the_channels_that_are_not_missing(raw):
    raw.info["bads"] = ["EEG Cz-LE"]
    raw._data[raw.ch_names.index("EEG O2-LE"), raw.times >= 20] = 0.0
    found = extract_recording(raw, FeatureSettings(reference="average", line_freq="off"))
    sound = raw.copy().pick([n for n in raw.ch_names[:19] if n not in ("EEG Cz-LE", "EEG O2-LE")])
    last = extract_features(
        sound.set_eeg_reference("average", verbose="error"), FeatureSettings(line_freq="off")
    )
    assert found.X["O2__variance"].isna().tolist() == [False, False, True]
    assert found.X["Cz__variance"].isna().all()
    columns = last.columns
    pd.testing.assert_frame_equal(found.X.loc[[20.0], columns], last.loc[[20.0]], rtol=1e-6)
    kept = extract_recording(raw, FeatureSettings(reference="keep", line_freq="off"))
    assert not kept.X["Fp1__variance"].equals(found.X["Fp1__variance"])


def test_wrong_words_are_refused():
    for settings in ({"channels": "some"}, {"channels": []}, {"reference": "Cz"}):
        with pytest.raises(InputError, match=next(iter(settings))):
            FeatureSettings(**settings)


def test_settings_come_back_from_a_table(raw):
    given = FeatureSettings(channels=["Fp1", "F7"], reference="average", line_freq=60)
    again = FeatureSettings.from_dict(given.as_dict(), given.columns)
    assert again.digest() == given.digest()
    old = {k: v for k, v in given.as_dict().items() if k not in ("channels", "reference")}
    assert FeatureSettings.from_dict(old, given.columns).channels == "all"


def test_the_command_chooses_channels_and_says_what_it_left_out(raw, tmp_path):
    raw.save(tmp_path / "s01_raw.fif", verbose="error")
    manifest, output = tmp_path / "study.csv", tmp_path / "table.csv"
    manifest.write_text("path,subject,label\ns01_raw.fif,s01,HC\n")

    config = tmp_path / "settings.toml"

    def run(settings):
        config.write_text(settings)
        words = ["features", manifest, "-o", output, "--force", "--config", config]
        result = CliRunner().invoke(app, [str(word) for word in words])
        said = " ".join((result.stdout + result.stderr).split())
        return result.exit_code, said

    code, said = run("reference = 'average'\nline_freq = 50")
    assert code == 0, said
    assert "not used, no position on the scalp: EEG 23A-23R (1), EEG 24A-24R (1)" in said
    info = FeatureTable.read(output).info
    assert (info["reference"], info["line_freq"]) == ("average", 50)
    assert run("channels = ['Fp1', 't3']")[0] == 0
    assert FeatureTable.read(output).channels == ["Fp1", "T7"]
    assert run("channels = 'all'")[0] == 0
    assert len(FeatureTable.read(output).channels) == 21
    for wrong in ("channels = []", "reference = 'Cz'", "line_freq = -50"):
        code, said = run(wrong)
        assert code == 2
        assert f"settings.toml: {wrong.split()[0]}" in said


def test_the_command_takes_limits_of_the_detection(raw, tmp_path):
    raw._data[3, raw.times >= 15] += 2e-3 * np.exp(-(raw.times[raw.times >= 15] - 15))
    raw.save(tmp_path / "s01_raw.fif", verbose="error")
    manifest, output = tmp_path / "study.csv", tmp_path / "table.csv"
    manifest.write_text("path,subject,label\ns01_raw.fif,s01,HC\n")

    config = tmp_path / "settings.toml"

    def run(settings=""):
        config.write_text(settings)
        words = ["features", manifest, "-o", output, "--force", "--config", config]
        return CliRunner().invoke(app, [str(word) for word in words])

    assert "detected: pop: 1 channel epochs" in run().stdout
    off = run("[limits]\n" + "\n".join(f"{name} = inf" for name in NO_POPS))
    assert "detected: pop" not in off.stdout
    assert FeatureTable.read(output).info["limits"] == NO_POPS
    for wrong in ("pops = 3", "pop = 'a lot'"):
        refused = run(f"[limits]\n{wrong}")
        assert refused.exit_code == 2
        assert "limit" in refused.stderr


def test_outcomes_name_what_each_recording_lost(raw):
    extraction = extract_table([Recording("s", "HC", raw.copy, "mine")])
    assert extraction.outcomes[0].dropped["EEG 23A-23R"] == "no position on the scalp"
