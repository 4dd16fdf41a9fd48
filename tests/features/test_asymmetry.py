"""Frontal alpha asymmetry: a block per pair, and what the rest of the package does with it."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import welch
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.features import FeatureSettings, extract_features, extract_recording, extract_table
from idfsmec.recordings import simulate_cohort

SFREQ = 250.0
NAMES = ["F3", "F4", "Fp1", "Fp2", "F8", "Cz"]
BOTH = FeatureSettings(features=["variance", "alpha_asymmetry"], band_pass=None, line_freq="off")
ALONE = FeatureSettings(features=["alpha_asymmetry"], band_pass=None, line_freq="off")


@pytest.fixture
def epochs():
    return np.random.default_rng(0).standard_normal((3, 6, 2500)) * np.arange(1, 7)[:, np.newaxis]


def alpha(epoch):
    frequencies, density = welch(epoch, SFREQ, nperseg=500)
    return density[..., (frequencies >= 8) & (frequencies < 13)].sum(axis=-1) * 0.5


def test_it_is_the_difference_of_logarithms(epochs):
    frame = extract_features(epochs, BOTH, sfreq=SFREQ, ch_names=NAMES)
    pairs = ["Fp2-Fp1__alpha_asymmetry", "F4-F3__alpha_asymmetry"]
    assert list(frame.columns) == [*(f"{name}__variance" for name in NAMES), *pairs]
    power = np.log(alpha(epochs))
    np.testing.assert_allclose(frame[pairs[0]], power[:, 3] - power[:, 2])
    np.testing.assert_allclose(frame[pairs[1]], power[:, 1] - power[:, 0])
    alone = extract_features(epochs, ALONE, sfreq=SFREQ, ch_names=NAMES)
    pd.testing.assert_frame_equal(alone, frame[pairs])


@pytest.mark.parametrize("side", [0, 1])
def test_a_pair_is_missing_when_either_side_is(epochs, side):
    epochs[1, side] = np.nan
    found = extract_recording(epochs, BOTH, sfreq=SFREQ, ch_names=NAMES)
    assert np.isnan(found.X["F4-F3__alpha_asymmetry"]).tolist() == [False, True, False]
    assert not found.X["Fp2-Fp1__alpha_asymmetry"].isna().any()
    assert found.channels == [*NAMES, "Fp2-Fp1", "F4-F3"]
    assert found.cells["a side of the pair is missing"] == {"F4-F3": [1]}


def test_without_alpha_or_pairs_there_is_no_column(epochs):
    none = FeatureSettings(features=["mean", "alpha_asymmetry"], bands={"mu": (8, 12)})
    frame = extract_features(epochs, none, sfreq=SFREQ, ch_names=NAMES)
    assert list(frame.columns) == [f"{name}__mean" for name in NAMES]
    frame = extract_features(epochs[:, 4:], BOTH, sfreq=SFREQ, ch_names=NAMES[4:])
    assert list(frame.columns) == ["F8__variance", "Cz__variance"]


def test_settings_come_back_from_the_columns():
    again = FeatureSettings.from_dict(BOTH.as_dict(), BOTH.columns)
    assert again.digest() == BOTH.digest()


@pytest.fixture(scope="module")
def table_file(tmp_path_factory):
    cohort = simulate_cohort(12, 19, duration=20, random_state=0)
    settings = FeatureSettings(features=["log_ap", "alpha_asymmetry"])
    table = extract_table(cohort.recordings, settings).table
    assert {"Fp2-Fp1", "F4-F3", "F8-F7"} <= set(table.channels)
    pairs = table.reasons[table.reasons["channel"] == "F4-F3"]
    gaps = int(table.X["F4-F3__alpha_asymmetry"].isna().sum())
    assert set(pairs["reason"]) <= {"a side of the pair is missing"}
    assert len(pairs) == gaps
    path = tmp_path_factory.mktemp("pairs") / "table.parquet"
    table.write(path)
    return path


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figure_files")
def test_select_benchmark_and_report_take_pairs_for_channels(table_file):
    def run(*words):
        ended = CliRunner().invoke(app, [*map(str, words)])
        assert ended.exit_code == 0, ended.output

    out = table_file.parent
    run("select", table_file, "-o", out / "ranking.csv")
    assert ",F4-F3,alpha_asymmetry," in (out / "ranking.csv").read_text()
    command = ["--methods", "ANOVA F", "--folds", 2, "--rates", "0.2", "--k", "2,4", "--jobs", 1]
    few = ["--experiment", "accuracy", "--resamples", 4]
    run("benchmark", table_file, "--out", out / "results", *command, *few)
    run("report", out / "results")
