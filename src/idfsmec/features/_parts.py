"""Finished recordings on disk: each written whole or not at all, found again by its content.

A part is valid for one key: the bytes of the recording's files and what else decides its signal
(:meth:`Recording.fingerprint`), the settings with the code of a user's own features, and the
version of the algorithm (:meth:`FeatureSettings.digest`). If any of them changes, another part is
looked for, and the old one is never read. What cannot be read as a whole part does not exist. So
nothing has to be invalidated, and a run that was killed at any moment goes on with what is there.
A recording without files has no key: it is computed every time.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._files import replacing
from idfsmec.errors import InputError
from idfsmec.features.outcomes import RecordingOutcome
from idfsmec.features.pipeline import RecordingFeatures
from idfsmec.features.settings import FeatureSettings
from idfsmec.recordings import Recording
from idfsmec.table import FeatureTable

ENDING = ".npz"
_NOTES = tuple(field.name for field in fields(RecordingFeatures) if field.name != "X")


def parts_folder(output: Path) -> Path:
    """Name the folder beside a table that keeps finished recordings until it is written.

    Examples
    --------
    >>> parts_folder(Path("study/table.parquet")).as_posix()
    'study/.table.parquet.parts'
    """
    return output.with_name(f".{output.name}.parts")


def part_path(folder: Path, fingerprint: str, digest: str) -> Path:
    """Name the file of one recording under one set of settings."""
    key = hashlib.sha256(f"{fingerprint}\n{digest}".encode()).hexdigest()
    return folder / f"{key}{ENDING}"


def write_part(path: Path, features: RecordingFeatures) -> None:
    """Write beside and rename, so that a kill leaves either the whole part or none."""
    notes = {name: getattr(features, name) for name in _NOTES}
    notes["columns"] = list(features.X.columns)
    with replacing(path) as (beside,), beside.open("wb") as file:
        # A table format would spend more time on its thousands of columns than on the values.
        np.savez(
            file,
            notes=np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8),
            values=features.X.to_numpy(),
            starts=features.X.index.to_numpy(),
        )


def read_notes(path: Path) -> RecordingFeatures | None:
    """Read everything but the numbers; None if there is no readable part."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
            notes = _notes(part)
        return RecordingFeatures(X=pd.DataFrame(), **{name: notes[name] for name in _NOTES})
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile):
        return None


def _read_columns(path: Path) -> list[str]:
    """Read the names of the features."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
        return _notes(part)["columns"]


def _read_features(path: Path) -> pd.DataFrame:
    """Read the numbers; the index holds the starts of the epochs."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
        return pd.DataFrame(
            part["values"],
            columns=_notes(part)["columns"],
            index=pd.Index(part["starts"], name="start"),
        )


def _notes(part: Any) -> dict[str, Any]:
    return json.loads(part["notes"].tobytes())


def assemble(
    recordings: Sequence[Recording],
    finished: Sequence[tuple[RecordingOutcome, Path]],
    settings: FeatureSettings,
) -> FeatureTable:
    """Put the parts below one another under the union of their channels."""
    used = [i for i, (outcome, _) in enumerate(finished) if outcome.n_rows]
    if not used:
        reasons = "; ".join(f"{o.source}: {o.error or 'all missing'}" for o, _ in finished[:3])
        raise InputError(f"No recording gave an epoch with any channel left ({reasons}).")
    parts = [finished[i][1] for i in used]
    columns = pd.Index(list(dict.fromkeys(c for part in parts for c in _read_columns(part))))
    sizes = [finished[i][0].n_rows for i in used]
    values = np.full((sum(sizes), len(columns)), np.nan)
    # One part at a time, so that the table is the only thing that grows with their number.
    for part, stop, size in zip(parts, np.cumsum(sizes), sizes, strict=True):
        frame = _read_features(part)
        values[stop - size : stop, columns.get_indexer(frame.columns)] = frame.to_numpy()
    montages = sorted({finished[i][0].montage for i in used} - {""})
    info = {
        **settings.as_dict(),
        "montage": montages[0] if len(montages) == 1 else montages or None,
        "names_in_files": _names_in_files([finished[i][0] for i in used]),
        "recordings": [
            {
                "name": Path(recordings[i].source).name,
                "subject": recordings[i].subject,
                "session": recordings[i].session,
                "condition": recordings[i].condition,
                "rows": finished[i][0].n_rows,
                "facts": finished[i][0].facts,
            }
            for i in used
        ],
    }
    return FeatureTable(
        pd.DataFrame(values, columns=columns),
        pd.Series(np.repeat([recordings[i].label for i in used], sizes)),
        pd.Series(np.repeat([recordings[i].subject for i in used], sizes)),
        info,
    )


def _names_in_files(outcomes: Sequence[RecordingOutcome]) -> dict[str, list[str]]:
    """What files call the channels that go by another name in the table."""
    names: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        for old, new in outcome.renamed.items():
            names.setdefault(new, {})[old] = None
    return {new: list(old) for new, old in names.items()}
