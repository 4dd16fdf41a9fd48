"""Table, audit and ranking as a BIDS derivative: every file named, every column described."""

from __future__ import annotations

import json
import re
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from idfsmec import __version__
from idfsmec._columns import split_column
from idfsmec._files import neutralise, replacing
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.evaluation import Results, recording_variables
from idfsmec.evaluation.auditing.variables import WORDS, say_variable
from idfsmec.table import FeatureTable

BIDS_VERSION = "1.10.0"
#: Bands and measures of the paper's features, as a reader wants them described.
_FEATURES = {
    "mean": "mean of the epoch",
    "variance": "variance of the epoch",
    "nsi": "non-stationary index: spread of the means of segments of the z-scored epoch",
    "hoc": "higher-order crossings: sign changes of the epoch",
    "c0": "C0 complexity: share of the power outside strong frequencies",
    "spectral_entropy": "entropy of the normalised power spectrum",
    "shannon_entropy": "entropy of the normalised absolute amplitudes",
    "ap_beta_theta_ratio": "beta power divided by theta power",
}


def write_derivative(
    folder: str | PathLike[str],
    table: FeatureTable,
    results: Results | None = None,
    *,
    name: str = "table",
    source: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a table, and what was found about it, as a BIDS derivative data set.

    Parameters
    ----------
    folder : path-like
        Such as ``derivatives/idfsmec`` of a BIDS tree.
    table : FeatureTable
    results : Results, optional
        Adds the audit and the ranking of the table.
    name : str
        What the results call the table.
    source : str, optional
        Where the recordings are: a path or an address, for ``SourceDatasets``.
    overwrite : bool
        Whether to replace files that are there.

    Returns
    -------
    Path
        The folder, with ``dataset_description.json``, ``participants.tsv``,
        ``desc-features_eeg.tsv``, and with results ``desc-audit_eeg.json`` and
        ``desc-ranking_eeg.tsv``; each table has a sidecar that describes every column.

    Examples
    --------
    >>> import tempfile
    >>> X, who = pd.DataFrame({"Fz__variance": [1.0, 2.0]}), pd.Series(["a", "b"])
    >>> table = FeatureTable(X, pd.Series(["HC", "MDD"]), who)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(one.name for one in write_derivative(folder, table).glob("*.tsv"))
    ['desc-features_eeg.tsv', 'participants.tsv']
    """
    out = Path(folder)
    if (out / "dataset_description.json").exists() and not overwrite:
        raise ExistingFileError(out / "dataset_description.json")
    out.mkdir(parents=True, exist_ok=True)
    people = participant_ids(table)
    _write_json(out / "dataset_description.json", _description(table, source))
    frame, described = _participants(table, people)
    _write_table(out / "participants", frame, described)
    frame, described = _features(table, people)
    _write_table(out / "desc-features_eeg", frame, described)
    if results is not None and name in results.audits:
        _write_json(out / "desc-audit_eeg.json", results.audits[name].as_dict())
    if results is not None and len(results.ranking):
        own = results.ranking[results.ranking["table"] == name].drop(columns="table")
        if len(own):
            _write_table(out / "desc-ranking_eeg", own, _RANKING)
    return out


def participant_ids(table: FeatureTable) -> dict[str, str]:
    """BIDS names of the subjects: ``sub-`` and letters and digits.

    Raises
    ------
    InputError
        Two subjects would have one name.
    """
    found: dict[str, str] = {}
    for subject in table.subjects.astype(str).unique():
        label = f"sub-{re.sub('[^0-9a-zA-Z]', '', subject.removeprefix('sub-'))}"
        if label == "sub-" or label in found.values():
            raise InputError(
                f"subject {subject!r} has no BIDS name of its own: letters and digits must differ"
            )
        found[subject] = label
    return found


def _description(table: FeatureTable, source: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "Name": "EEG features by channel",
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "idfsmec", "Version": __version__}],
    }
    if source:
        described["SourceDatasets"] = [{"URL": source}]
    return described


def _participants(
    table: FeatureTable, people: dict[str, str]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One line per person; who has two labels has both, parted by a comma."""
    known = recording_variables(table).reset_index()
    labels = known.groupby("subject", sort=False)["label"].agg(
        lambda own: ",".join(sorted(map(str, own)))
    )
    first = known.drop(columns="label").groupby("subject", sort=False).first()
    frame = first.assign(group=labels).reset_index()
    frame.insert(0, "participant_id", [people[one] for one in frame.pop("subject")])
    frame.insert(1, "group", frame.pop("group"))
    described: dict[str, Any] = {
        "participant_id": {"Description": "who was recorded"},
        "group": {"Description": "label: what is to be told apart"},
    }
    for name in map(str, frame.columns[2:]):
        known_as = WORDS.get(name, say_variable(name))
        described[name] = {"Description": f"{known_as}; mean over the person's recordings"}
    return frame, described


def _features(table: FeatureTable, people: dict[str, str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    about = {"participant_id": table.subjects.astype(str).map(people), "group": table.y}
    described: dict[str, Any] = {
        "participant_id": {"Description": "who was recorded"},
        "group": {"Description": "label: what is to be told apart"},
    }
    if table.sites is not None:
        about["site"] = table.sites
        described["site"] = {"Description": "where it was recorded"}
    rows = pd.DataFrame() if table.rows is None else table.rows
    for name in map(str, rows.columns):
        about[name] = rows[name]
        described[name] = {"Description": f"{name} of the sample, as the study gives it"}
    frame = pd.concat(
        [pd.DataFrame(about).reset_index(drop=True), table.X.reset_index(drop=True)], axis=1
    )
    for column in map(str, table.X.columns):
        channel, feature = split_column(column)
        described[column] = {
            "Description": f"{_say_feature(feature, table)}, at {channel}; n/a: not recorded",
        }
    return frame, described


def _say_feature(feature: str, table: FeatureTable) -> str:
    if feature in _FEATURES:
        return _FEATURES[feature]
    kind, _, band = feature.partition("_")
    limits = (table.info.get("bands") or {}).get(band)
    if kind in {"ap", "de"} and limits:
        what = "power" if kind == "ap" else "differential entropy"
        return f"{what} in {limits[0]:g}-{limits[1]:g} Hz ({band})"
    return feature


_RANKING = {
    "rank": {"Description": "1 is the best feature"},
    "channel": {"Description": "electrode"},
    "feature": {"Description": "what was computed"},
    "score": {"Description": "channel weight times feature weight"},
    "channel_weight": {"Description": "weight of the channel; all sum to 1"},
    "feature_weight": {"Description": "weight of the feature within its channel"},
    "stability": {"Description": "share of folds that selected the feature"},
    "method": {"Description": "method that ranked"},
    "direction": {"Description": "group in which the feature is higher"},
}


def _write_table(path: Path, frame: pd.DataFrame, described: dict[str, Any]) -> None:
    """A table parted by tabs, and its sidecar: a description of every column."""
    sidecar = {
        str(name): described.get(str(name), {"Description": str(name).replace("_", " ")})
        for name in frame.columns
    }
    with replacing(path.with_name(f"{path.name}.tsv")) as (beside,):
        neutralise(frame).to_csv(beside, sep="\t", index=False, na_rep="n/a")
    _write_json(path.with_name(f"{path.name}.json"), sidecar)


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    with replacing(path) as (beside,):
        beside.write_text(text + "\n", "utf-8")
