"""Finished recordings on disk: each written whole or not at all, found again by its content."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._files import naming
from idfsmec.features._recording import RecordingFeatures

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
    """Name the file of one recording under one set of options."""
    key = hashlib.sha256(f"{fingerprint}\n{digest}".encode()).hexdigest()
    return folder / f"{key}{ENDING}"


def write_part(path: Path, features: RecordingFeatures) -> None:
    """Write beside and rename, so that a kill leaves either the whole part or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    notes = {name: getattr(features, name) for name in _NOTES}
    notes["columns"] = list(features.X.columns)
    beside = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("wb") as file:
            # A table format would spend more time on its thousands of columns than on the values.
            np.savez(
                file,
                notes=np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8),
                values=features.X.to_numpy(),
                starts=features.X.index.to_numpy(),
            )
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise naming(error, path) from error
    finally:
        beside.unlink(missing_ok=True)


def read_notes(path: Path) -> RecordingFeatures | None:
    """Read everything but the numbers; None if there is no readable part."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
            notes = _notes(part)
        return RecordingFeatures(X=pd.DataFrame(), **{name: notes[name] for name in _NOTES})
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile):
        return None


def read_columns(path: Path) -> list[str]:
    """Read the names of the features."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
        return _notes(part)["columns"]


def read_features(path: Path) -> pd.DataFrame:
    """Read the numbers; the index holds the starts of the epochs."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
        return pd.DataFrame(
            part["values"],
            columns=_notes(part)["columns"],
            index=pd.Index(part["starts"], name="start"),
        )


def _notes(part: Any) -> dict[str, Any]:
    return json.loads(part["notes"].tobytes())
