"""Why a channel is missing in a row: a long list, kept in a file beside the table."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._table_rows import EPOCH, RECORDING
from idfsmec.errors import InputError

CHANNEL, REASON = "channel", "reason"
COLUMNS = [RECORDING, EPOCH, CHANNEL, REASON]
_ENDING = ".reasons.tsv.gz"


def reasons_path(path: Path) -> Path:
    """Name the file beside a table that says why cells are empty.

    Examples
    --------
    >>> reasons_path(Path("table.parquet")).name
    'table.parquet.reasons.tsv.gz'
    """
    return path.with_name(path.name + _ENDING)


def clean_reasons(
    reasons: Any, rows: pd.DataFrame | None, channels: Iterable[str]
) -> pd.DataFrame | None:
    """Keep the reasons that concern the rows and channels of a table; None if there are none.

    Parameters
    ----------
    reasons : DataFrame or None
        With the columns recording, epoch, channel and reason.
    rows : DataFrame or None
        What is known about rows, with recording and epoch.
    channels : iterable of str
    """
    if reasons is None:
        return None
    if not isinstance(reasons, pd.DataFrame) or set(reasons.columns) != set(COLUMNS):
        raise InputError(f"reasons must be a DataFrame with the columns {', '.join(COLUMNS)}.")
    if rows is None or not {RECORDING, EPOCH} <= set(rows.columns):
        return None  # nobody could tell which row is meant
    text = pd.Series(["text"]).dtype
    clean = pd.DataFrame(
        {
            name: reasons[name].astype(np.int64 if name == EPOCH else text).to_numpy()
            for name in COLUMNS
        }
    ).astype({name: text for name in COLUMNS if name != EPOCH})
    there = pd.MultiIndex.from_frame(rows[[RECORDING, EPOCH]])
    kept = pd.MultiIndex.from_frame(clean[[RECORDING, EPOCH]]).isin(there)
    kept &= clean[CHANNEL].isin(list(channels)).to_numpy()
    clean = clean[kept].drop_duplicates(ignore_index=True)
    return clean if len(clean) else None


def pack(reasons: pd.DataFrame) -> bytes:
    """Write reasons as text parted by tabs, packed; the same reasons give the same bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 6, fileobj=packed, mtime=0) as file:
        text = reasons.to_csv(
            sep="\t", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
        )
        file.write(text.encode())
    return packed.getvalue()


def digest(packed: bytes) -> str:
    """Name reasons by their bytes, so that a table knows its own."""
    return hashlib.sha256(packed).hexdigest()


def read_reasons(path: Path, known: Any) -> pd.DataFrame | None:
    """Read the file beside a table, if it is the one that the table was written with."""
    file = reasons_path(path)
    if known is None or not file.is_file():
        return None
    packed = file.read_bytes()
    if digest(packed) != known:
        warnings.warn(
            f"{file}: was not written with {path.name} or is damaged, and is left aside.",
            stacklevel=2,
        )
        return None
    return pd.read_csv(
        io.BytesIO(gzip.decompress(packed)),
        sep="\t",
        dtype={EPOCH: np.int64, RECORDING: str, CHANNEL: str, REASON: str},
        keep_default_na=False,
    )


def cells_to_reasons(
    recording: str,
    cells: dict[str, dict[str, list[int]]],
    absent: Iterable[str],
    epochs: Iterable[int],
) -> pd.DataFrame:
    """List why channels are missing in one recording.

    Parameters
    ----------
    recording : str
    cells : dict
        Reason to channel to the numbers of epochs.
    absent : iterable of str
        Channels of the table that the recording does not have.
    epochs : iterable of int
        Its epochs in the table.

    Examples
    --------
    >>> cells_to_reasons("s01", {"marked bad": {"Cz": [0, 1]}}, ["Pz"], [1])
      recording  epoch channel                reason
    0       s01      0      Cz            marked bad
    1       s01      1      Cz            marked bad
    2       s01      1      Pz  not in the recording
    """
    lines = [
        (recording, epoch, channel, reason)
        for reason, hits in cells.items()
        for channel, where in hits.items()
        for epoch in where
    ]
    there = list(epochs)
    lines += [(recording, epoch, channel, NOT_RECORDED) for channel in absent for epoch in there]
    return pd.DataFrame(lines, columns=COLUMNS)


NOT_RECORDED = "not in the recording"
