"""Functions of mne-features, by name."""

import importlib
import pickle
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.features import FeatureSettings, extract_features
from idfsmec.features.extract import compute_features

SFREQ = 250.0
NAMES = ("hurst_exp", "pow_freq_bands", "spect_edge_freq")


@pytest.fixture(scope="module")
def epochs():
    return np.cumsum(np.random.default_rng(0).standard_normal((2, 3, 500)), axis=-1)


def settings(*names):
    return FeatureSettings(features=[f"mne_features:{name}" for name in names], epoch=2)


@pytest.fixture
def univariate():
    """The library, which compiles for seconds: not while tests are collected."""
    return importlib.import_module("mne_features.univariate")


def test_values_are_those_of_the_library(epochs, univariate):
    values, columns = compute_features(epochs, SFREQ, settings(*NAMES))
    numbered = [f"mne_features:pow_freq_bands_{i}" for i in range(1, 6)]
    assert columns == ["mne_features:hurst_exp", *numbered, "mne_features:spect_edge_freq"]
    for epoch, got in zip(epochs, values, strict=True):
        expected = np.column_stack(
            [
                univariate.compute_hurst_exp(epoch),
                univariate.compute_pow_freq_bands(SFREQ, epoch).reshape(3, 5),
                univariate.compute_spect_edge_freq(SFREQ, epoch),
            ]
        )
        np.testing.assert_allclose(got, expected)


def test_a_missing_channel_has_none(epochs):
    given = epochs.copy()
    given[0, 1] = np.nan
    values, _ = compute_features(given, SFREQ, settings("rms", "pow_freq_bands"))
    assert np.argwhere(np.isnan(values).any(axis=2)).tolist() == [[0, 1]]


def test_a_table_says_by_its_columns_which_functions_it_has(epochs):
    given = settings(*NAMES)
    again = FeatureSettings.from_dict(given.as_dict(), reversed(given.columns))
    assert set(again.columns) == set(given.columns)
    assert pickle.loads(pickle.dumps(again)).columns == again.columns
    assert settings("rms").digest() != settings("std").digest()


def test_columns_of_a_recording(epochs):
    frame = extract_features(epochs, settings("rms"), sfreq=SFREQ, ch_names=["Fp1", "Fp2", "Oz"])
    assert list(frame.columns) == [f"{name}__mne_features:rms" for name in ("Fp1", "Fp2", "Oz")]


@pytest.mark.parametrize(
    ("name", "why"),
    [("phase_lock_val", "is a function of pairs of channels"), ("hurst", "does not exist")],
)
def test_what_is_not_univariate_is_refused_in_one_line(name, why):
    with pytest.raises(InputError, match=why) as refused:
        settings(name)
    assert "hurst_exp" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_function_that_fails_is_named(univariate, monkeypatch):
    def broken(sfreq):
        return {"rms": lambda data: 1 / 0}

    monkeypatch.setattr(univariate, "get_univariate_funcs", broken)
    with pytest.raises(InputError, match=r"mne_features:rms fails on 2 s of noise at 250 Hz"):
        assert settings("rms").columns


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mne_features.univariate", None)
    with pytest.raises(InputError, match=r"package mne_features, .* 'idfsmec\[spectra\]'"):
        settings("rms")


def test_the_command_refuses_it_as_well(tmp_path):
    manifest = tmp_path / "study.csv"
    manifest.write_text("path,subject,label\nx.edf,s01,HC\n")
    command = ["features", str(manifest), "--features", "mne_features:time_corr"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "pairs of channels" in " ".join(refused.stderr.split())
