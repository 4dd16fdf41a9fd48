"""Detection of missing channels, line noise, features of signals, recordings, simulation."""

import mne
import numpy as np
import pytest

from tests.golden import api
from tests.golden.cases import case, cases_of, check
from tests.golden.inputs import (
    CAP,
    make_damaged,
    make_raw,
    make_signal,
    make_table,
    write_study,
)

SFREQ = 250.0
ALL_FEATURES = [
    "alpha_asymmetry",
    "wpli",
    "coherence",
    "hjorth",
    "lempel_ziv",
    "permutation_entropy",
    "aperiodic",
    "c0",
    "spectral_entropy",
    "de",
    "ap",
    "log_ap",
    "ap_beta_theta_ratio",
    "log_ap_beta_theta_ratio",
    "mean",
    "variance",
    "log_variance",
    "nsi",
    "hoc",
    "shannon_entropy",
]


def cut(signal, n_epochs=8):
    return signal.reshape(len(signal), n_epochs, -1).swapaxes(0, 1)


def detected(signal, **options):
    found = api.detect_missing(cut(signal) * 1e-6, SFREQ, ch_names=CAP, **options)
    return {
        "observed": found.observed.to_numpy().astype(int),
        "bads": found.bads,
        "reasons": {
            reason: np.argwhere(hits) for reason, hits in found.reasons.items() if hits.any()
        },
    }


@case("signals")
def detection(folder):
    damaged = make_damaged()
    return {
        "sound": detected(make_signal(1)),
        "damaged": detected(damaged),
        "line noise named": detected(damaged, line_freq=50.0),
        "line noise kept": detected(damaged, remove="off"),
        "all flat": detected(np.zeros((len(CAP), 10_000))),
    }


@case("signals")
def detection_in_a_cohort(folder):
    """The simulator's electrodes come off in every way that it knows."""
    kinds = ("flat", "drift", "line", "noise")
    cohort = api.simulate_cohort(
        4, 19, duration=40, detached=0.15, detachment_kinds=kinds, random_state=3
    )
    found = {"truth": cohort.detachments}
    for recording in cohort.recordings:
        raw = recording.load()
        epochs = mne.make_fixed_length_epochs(raw, 10.0, preload=True, verbose="error")
        observed = api.detect_missing(epochs).observed
        found[recording.subject] = {
            name: (~observed[name]).sum() for name in observed if not observed[name].all()
        }
    return found


@case("signals", rtol=1e-6)
def simulated_cohort(folder):
    cohort = api.simulate_cohort(3, 19, duration=8, random_state=1)
    raw = cohort.recordings[1].load()
    return {
        "informative": cohort.informative_features,
        "channels": cohort.informative_channels,
        "labels": [one.label for one in cohort.recordings],
        "detached": cohort.detachments,
        "rms": 1e6 * raw.get_data().std(axis=1),
        "first": 1e6 * raw.get_data()[:, 100],
    }


@case("signals", rtol=1e-6)
def typical_amplitude(folder):
    signals = [cut(make_signal(seed)) for seed in range(3)]
    return {"amplitude": api.estimate_typical_amplitude(signals, SFREQ)}


@case("signals", rtol=1e-6, atol=1e-6)
def line_noise(folder):
    found = {}
    for name, line_freq in {"auto": "auto", "named": 50.0, "off": "off"}.items():
        signal = make_signal(2)
        clean, lines, frequency = api.remove_line_noise(signal, SFREQ, line_freq)
        found[name] = {
            "lines": lines,
            "frequency": frequency,
            "rms removed": (signal - clean).std(axis=1),
            "clean": clean[::3, ::1000],
        }
    quiet = np.random.default_rng(0).normal(size=(2, 5000))
    found["none there"] = api.remove_line_noise(quiet, SFREQ)[1]
    return found


@case("signals", rtol=1e-6, atol=1e-8)
def all_features(folder):
    settings = api.FeatureSettings(features=ALL_FEATURES, hoc_orders=2)
    values, names = api.compute_features(cut(make_signal(3))[:2, :4], SFREQ, settings)
    return {name: values[..., i] for i, name in enumerate(names)}


@case("signals", rtol=1e-6, atol=1e-8)
def features_of_recordings(folder):
    raw = make_raw(np.nan_to_num(make_damaged(4)), bads=["Fp2"])
    found = {}
    for name, options in {
        "default": {},
        "log, average reference": {"features": "log", "reference": "average"},
        "short epochs": {"epoch": 5.0, "overlap": 2.5, "features": ["ap", "hoc"]},
        "own bands": {"bands": {"mu": (8, 12)}, "features": ["de"], "detect": False},
        "pairs": {"features": ["alpha_asymmetry", "coherence", "wpli"]},
        "no filter": {"band_pass": None, "resample": None, "features": ["variance"]},
        "named channels": {"channels": ["o1", "F3"], "features": ["c0", "nsi"]},
    }.items():
        made = api.extract_recording(raw, api.FeatureSettings(**options))
        found[name] = {
            "columns": list(made.X.columns)[:20],
            "shape": made.X.shape,
            "onsets": made.X.index.to_numpy(),
            "values": made.X.to_numpy()[1, :20],
            "missing": np.isnan(made.X.to_numpy()).sum(axis=1),
            "reasons": made.reasons,
        }
    made = api.extract_recording(raw)
    found["facts"] = {
        name: value for name, value in made.acquisition.items() if isinstance(value, int | float)
    }
    array = api.extract_recording(cut(make_signal(3)), sfreq=SFREQ, ch_names=CAP)
    found["array"] = array.X.iloc[:2, :20]
    return found


@case("signals")
def masks(folder):
    raw = make_raw(make_signal(0), bads=["F3"])
    raw.set_annotations(
        mne.Annotations([4.0, 21.0], [3.0, 1.0], ["BAD_move", "bad"], ch_names=[["O1"], []])
    )
    starts = np.arange(0, 40, 5.0)
    bads = api.observed_from_bads(raw, CAP, 8)
    annotated = api.observed_from_annotations(raw, CAP, starts, 5.0)
    return {
        "bads": bads.to_numpy().astype(int),
        "text": api.observed_from_bads("F3; O2", CAP, 1).to_numpy().astype(int),
        "annotations": annotated.to_numpy().astype(int),
        "combined": api.combine_observed(bads, annotated).to_numpy().astype(int),
    }


@case("signals")
def manifest(folder):
    recordings = api.read_manifest(write_study(folder / "manifest"))
    first = folder / "manifest" / "s0.edf"
    (folder / "manifest" / "s3.edf").write_bytes(first.read_bytes())
    return {
        "subjects": [one.subject for one in recordings],
        "labels": [one.label for one in recordings],
        "channels": recordings[0].load().ch_names,
        "duplicates": [
            [one.subject for one in group] for group in api.find_duplicates(recordings)
        ],
    }


@case("signals")
def simulated_missingness(folder):
    made = make_table(8, 5, missing=0.1)
    table = api.FeatureTable(made["X"], made["y"], made["subjects"])
    return {
        f"{pattern} {rate}": api.simulate_missing(table, rate, pattern, random_state=7)
        .observed.to_numpy()
        .astype(int)
        for pattern in ("random", "recording", "burst", "region", "uneven")
        for rate in (0.2, 0.5)
    }


@pytest.mark.parametrize(("file", "name"), cases_of(__name__))
def test_signals_do_as_recorded(file, name, folder):
    check(file, name, folder)
