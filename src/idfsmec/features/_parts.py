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
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._columns import join_column, split_column
from idfsmec._files import replacing
from idfsmec._names import same_name
from idfsmec._table_reasons import cells_to_reasons
from idfsmec._table_rows import CONDITION, EPOCH, ONSET, RECORDING, SESSION, described
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
    """Read everything but the numbers, which are only checked; None if no part is whole."""
    try:
        with zipfile.ZipFile(path) as packed:
            if packed.testzip() is not None:
                return None
        with path.open("rb") as file, np.load(file, allow_pickle=False) as part:
            notes = _notes(part)
        return RecordingFeatures(X=pd.DataFrame(), **{name: notes[name] for name in _NOTES})
    except Exception:
        return None  # a flipped bit makes readers raise anything


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
    outcomes = [finished[i][0] for i in used]
    spelling = _Spelling()
    columns = pd.Index(
        list(dict.fromkeys(c for part in parts for c in spelling.of(_read_columns(part))))
    )
    sizes = [outcome.n_rows for outcome in outcomes]
    values = np.full((sum(sizes), len(columns)), np.nan)
    onsets = np.empty(sum(sizes))
    # One part at a time, so that the table is the only thing that grows with their number.
    for part, stop, size in zip(parts, np.cumsum(sizes), sizes, strict=True):
        frame = _read_features(part)
        values[stop - size : stop, columns.get_indexer(pd.Index(spelling.of(frame.columns)))] = (
            frame.to_numpy()
        )
        onsets[stop - size : stop] = frame.index
    chosen = [recordings[i] for i in used]
    names = recording_names(chosen)
    montages = sorted({outcome.montage for outcome in outcomes} - {""})
    info = {
        **settings.as_dict(),
        "montage": montages[0] if len(montages) == 1 else montages or None,
        "names_in_files": _names_in_files(outcomes),
        "recordings": list(map(_describe, names, chosen, outcomes)),
    }
    sites = [recording.site or "" for recording in chosen]
    return FeatureTable(
        pd.DataFrame(values, columns=columns),
        pd.Series(np.repeat([recording.label for recording in chosen], sizes)),
        pd.Series(np.repeat([recording.subject for recording in chosen], sizes)),
        info,
        sites=pd.Series(np.repeat(sites, sizes)) if all(sites) else None,
        rows=_rows(names, chosen, outcomes, onsets),
        reasons=_reasons(names, outcomes, columns, spelling),
    )


class _Spelling:
    """One spelling for a channel that recordings write differently: the first."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def of(self, columns: Iterable[str]) -> list[str]:
        """Columns of one recording, with channels as they were spelt first."""
        parts = [split_column(column) for column in columns]
        new = self.channels(channel for channel, _ in parts)
        return [join_column(new[channel], feature) for channel, feature in parts]

    def channels(self, channels: Iterable[str]) -> dict[str, str]:
        """Channels of one recording, from their own spelling to the first."""
        own = dict.fromkeys(channels)
        for channel in own:
            self._first.setdefault(same_name(channel), channel)
        new = {channel: self._first[same_name(channel)] for channel in own}
        # Two in one file: that is for people to mend.
        return new if len(set(new.values())) == len(new) else {one: one for one in own}


def recording_names(recordings: Sequence[Recording]) -> list[str]:
    """Give each recording a short name of its own: its file's, or its subject's.

    Examples
    --------
    >>> days = [Recording("s1", "HC", list, f"{day}/rest.edf") for day in ("monday", "friday")]
    >>> recording_names(days)
    ['rest', 'rest-2']
    """
    seen: Counter[str] = Counter()
    names = []
    for recording in recordings:
        source = Path(recording.source)
        name = source.stem if recording.files or source.suffix else recording.subject
        while seen[name]:
            seen[name] += 1
            name = f"{name}-{seen[name]}"
        seen[name] += 1
        names.append(name)
    return names


def _describe(name: str, recording: Recording, outcome: RecordingOutcome) -> dict[str, Any]:
    return {
        RECORDING: name,
        "name": Path(recording.source).name,
        "subject": recording.subject,
        "session": recording.session,
        "condition": recording.condition,
        "rows": outcome.n_rows,
        "facts": outcome.facts,
    }


def _rows(
    names: Sequence[str],
    recordings: Sequence[Recording],
    outcomes: Sequence[RecordingOutcome],
    onsets: NDArray[np.float64],
) -> pd.DataFrame:
    """Say of each row which recording and epoch it is, and what the study knows about it."""
    known = pd.DataFrame(
        {
            RECORDING: pd.Series(names, dtype=object),
            SESSION: pd.Series([one.session for one in recordings], dtype=object),
            CONDITION: pd.Series([one.condition for one in recordings], dtype=object),
        }
    )
    known = pd.concat([known, described([one.details for one in recordings])], axis=1)
    rows = known.loc[np.repeat(known.index, [one.n_rows for one in outcomes])]
    epochs = [epoch for outcome in outcomes for epoch in outcome.epochs]
    rows[EPOCH], rows[ONSET] = epochs, onsets
    return rows.reset_index(drop=True)


def _reasons(
    names: Sequence[str],
    outcomes: Sequence[RecordingOutcome],
    columns: Iterable[str],
    spelling: _Spelling,
) -> pd.DataFrame:
    """List why channels are missing, also those that a recording does not have."""
    channels = list(dict.fromkeys(split_column(column)[0] for column in columns))
    listed = []
    for name, outcome in zip(names, outcomes, strict=True):
        new = spelling.channels(outcome.channels)
        cells = {
            reason: {new.get(channel, channel): epochs for channel, epochs in hits.items()}
            for reason, hits in outcome.cells.items()
        }
        absent = [channel for channel in channels if channel not in new.values()]
        listed.append(cells_to_reasons(name, cells, absent, outcome.epochs))
    return pd.concat(listed, ignore_index=True)


def _names_in_files(outcomes: Sequence[RecordingOutcome]) -> dict[str, list[str]]:
    """What files call the channels that go by another name in the table."""
    names: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        for old, new in outcome.renamed.items():
            names.setdefault(new, {})[old] = None
    return {new: list(old) for new, old in names.items()}
