"""The names of the package that the golden files need: whoever renames something mends it here.

Expected values keep the names of revision 144077f. `RENAMED` leads from today's names of columns,
keys, files and values to those; `OPTIONS` and `FILES` from 144077f's to today's.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import mne
import pandas as pd
from typer.testing import CliRunner

from idfsmec import FeatureTable
from idfsmec.audit import audit, audits_of, recording_variables
from idfsmec.cli import app
from idfsmec.evaluation import Protocol, Results, accuracy, train_model
from idfsmec.evaluation.statistics import compare_folds
from idfsmec.features import FeatureSettings, extract_recording
from idfsmec.features.extract import compute_features
from idfsmec.metrics import fold_interval, holm, score_decisions
from idfsmec.missing import (
    combine_observed,
    estimate_typical_amplitude,
    observed_from_annotations,
    observed_from_bads,
)
from idfsmec.missing import detect_missing as _detect_missing
from idfsmec.missing import missingness_association as missingness_association
from idfsmec.missing import simulate_missing as simulate_missing
from idfsmec.missing.line_noise import remove_line_noise as _remove_line_noise
from idfsmec.paper import published
from idfsmec.paper import reproduce as _reproduce
from idfsmec.prediction import (
    IDFSMECCV,
    METHODS,
    ChannelImputer,
    IDFSMECClassifier,
    IDFSMECRegressor,
    SiteHarmonizer,
    fit_model,
    load_model,
    save_model,
)
from idfsmec.prediction import predict_subjects as _predict_subjects
from idfsmec.prediction.folds import make_folds
from idfsmec.recordings import find_duplicates, read_manifest, simulate_cohort
from idfsmec.selection import (
    CDLSR,
    CMIM,
    FSOR,
    GRMOR,
    IDFSMEC,
    MRMR,
    MRMSR,
    PSNSGA,
    RFS,
    RRCT,
    ReliefF,
    StabilitySelector,
    channel_frame,
    feature_effects,
    idfs_path,
    ranking_frame,
    selection_stability,
)

__all__ = [
    "CDLSR",
    "CMIM",
    "FSOR",
    "GRMOR",
    "IDFSMEC",
    "IDFSMECCV",
    "MRMR",
    "MRMSR",
    "PSNSGA",
    "RFS",
    "RRCT",
    "ChannelImputer",
    "FeatureSettings",
    "FeatureTable",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "Protocol",
    "ReliefF",
    "Results",
    "SiteHarmonizer",
    "StabilitySelector",
    "TunedMethod",
    "accuracy",
    "audit",
    "audits_of",
    "channel_frame",
    "combine_observed",
    "compare_folds",
    "compute_features",
    "detect_missing",
    "estimate_typical_amplitude",
    "extract_recording",
    "feature_effects",
    "find_duplicates",
    "fit_model",
    "fold_interval",
    "holm",
    "idfs_path",
    "load_model",
    "make_folds",
    "missingness_association",
    "observed_from_annotations",
    "observed_from_bads",
    "published",
    "ranking_frame",
    "read_manifest",
    "recording_variables",
    "save_model",
    "score_decisions",
    "selection_stability",
    "simulate_cohort",
    "simulate_missing",
    "train_model",
]

#: Today's name of a column, key, file or value -> its name at 144077f, in all cases.
RENAMED: dict[str, str] = {
    "imputer": "filler",
    "n_subjects": "n_people",
    "fold_frequency": "stability",
}
#: The same in single cases, where one name has several old ones: case -> names.
RENAMED_IN: dict[str, dict[str, str]] = {
    "audit": {
        "n_subjects": "n_people",
        "matched": "alike",
        "estimable": "told",
    },
    "predictions": {
        "subject": "person",
        "strongest channels": "loudest channels",
        "training subjects nearer": "training people nearer",
    },
}
#: Word of a command at 144077f -> today's, for `run`; None leaves the word out.
OPTIONS: dict[str, str | None] = {
    "--filler": "--imputer",
    "--n-splits": "--folds",
    "--seeds": "--repeats",
    "--harmonize": "--harmonize=all",
    "--no-audit": "--experiment=accuracy",
}
#: Name of a file at 144077f -> today's, for files that cases read.
FILES: dict[str, str] = {}


def of_predicted(frame):
    """Columns of predictions as at 144077f: probability and interval of the predicted class."""
    (second,) = (name for name in frame if name.startswith("probability of "))
    ill = frame["predicted"] == second.removeprefix("probability of ")
    one, low, high = frame[second], frame["low"], frame["high"]
    first = {
        "predicted": frame["predicted"],
        "probability": one.where(ill, 1 - one),
        "low": low.where(ill, 1 - high),
        "high": high.where(ill, 1 - low),
        "probability of HC": 1 - one,
        second: one,
    }
    return pd.concat([frame.iloc[:, :1], pd.DataFrame(first), frame.iloc[:, 5:]], axis=1)


def old_names(case):
    return RENAMED | RENAMED_IN.get(case, {})


def run(command, *words):
    """Run a command in this process; gives its exit code, what it printed and the error lines."""
    words = [OPTIONS.get(str(word), str(word)) for word in words]
    words = [word for word in words if word is not None]
    ended = CliRunner().invoke(app, [command, *words], terminal_width=200)
    return ended.exit_code, ended.stdout, ended.stderr


def detect_missing(epochs, sfreq=None, *, ch_names=None, line_freq=None, remove="auto"):
    """``line_freq`` is what a header says, ``remove`` what is taken out before."""
    if line_freq is not None:
        info = mne.create_info(ch_names, sfreq, "eeg")
        info["line_freq"] = line_freq
        epochs = mne.EpochsArray(epochs, info, verbose="error")
    return _detect_missing(epochs, sfreq, ch_names=ch_names, line_freq=remove)


def remove_line_noise(data, sfreq, line_freq="auto"):
    """Clean data, lines of every channel and the frequency."""
    clean, found = _remove_line_noise(data, sfreq, line_freq)
    return clean, found.lines, next((lines[0] for lines in found.lines if lines), None)


def tuned_method(name, **parts):
    return replace(METHODS[name], **parts).pipeline()


TunedMethod = tuned_method


def predict_subjects(model, table):
    """A frame with one row per subject."""
    return _predict_subjects(model, table).frame


def path_of(name):
    return FILES.get(name, name)


def read_csv(path, case=""):
    """Read an exported file, with the columns of 144077f; ``case`` as in `RENAMED_IN`."""
    return pd.read_csv(path).rename(columns=old_names(case))


def read_audit(folder, name):
    """The audit of a table in a folder of results, with the keys of 144077f."""

    def old(value):
        if isinstance(value, dict):
            return {old_names("audit").get(key, key): old(entry) for key, entry in value.items()}
        return [old(entry) for entry in value] if isinstance(value, list) else value

    return old(json.loads((Path(folder) / "audit.json").read_text())[name])


def reproduce(data_set, data, out, protocol, methods):
    return _reproduce(
        data_set, data, out, protocol=Protocol(**protocol), methods=methods, n_jobs=1
    )


def make_small_demo(n_subjects, seconds, rates, n_splits, ks, methods, n_channels, n_resamples):
    """Have ``demo --quick`` compute as little as this; gives what undoes it."""
    demo = sys.modules["idfsmec.cli.demo"]
    before = demo.QUICK
    demo.QUICK = (
        {"n_subjects": n_subjects, "n_channels": n_channels, "duration": seconds},
        {
            "methods": methods,
            "rates": rates,
            "k": ks,
            "folds": n_splits,
            "resamples": n_resamples,
        },
    )
    return lambda: setattr(demo, "QUICK", before)
