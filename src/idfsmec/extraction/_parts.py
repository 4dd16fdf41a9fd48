"""Finished recordings on disk: each written whole or not at all, found again by its content."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from idfsmec.extraction._recording import RecordingFeatures

_METADATA = b"idfsmec_part"
_START = "start"
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
    return folder / f"{key}.parquet"


def write_part(path: Path, features: RecordingFeatures) -> None:
    """Write beside and rename, so that a kill leaves either the whole part or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    notes = {name: getattr(features, name) for name in _NOTES}
    table = pa.Table.from_pandas(features.X.reset_index(), preserve_index=False)
    table = table.replace_schema_metadata({_METADATA: json.dumps(notes).encode()})
    beside = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("wb") as file:
            pq.write_table(table, file, compression="none", use_dictionary=False)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_notes(path: Path) -> RecordingFeatures | None:
    """Read everything but the numbers; None if there is no readable part."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        notes = json.loads(metadata[_METADATA])
        return RecordingFeatures(X=pd.DataFrame(), **{name: notes[name] for name in _NOTES})
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return None


def read_columns(path: Path) -> list[str]:
    """Read the names of the features."""
    return [name for name in pq.read_schema(path).names if name != _START]


def read_features(path: Path) -> pd.DataFrame:
    """Read the numbers; the index holds the starts of the epochs."""
    return pq.read_table(path).to_pandas().set_index(_START)
