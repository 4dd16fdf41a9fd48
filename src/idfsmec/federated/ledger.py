"""Ledger: what a site released before, so that two releases do not reveal a few subjects.

The file stays at the site and is never shared. It holds, for every release, hashes of the subjects
of every cell and of their values, with a salt of its own. A release is refused

- if a union of its cells differs from a union of an earlier release's by 1 to ``min_subjects - 1``
  subjects, counting those whose values changed: the difference of the sums would be over these;
- if the study key is new for subjects who were released before: two fold assignments of the same
  subjects have small intersections.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._files import replacing
from idfsmec.errors import InputError

#: Name of the file, beside the summaries of a site.
LEDGER = "idfsmec-ledger.json"
_VERSION = 2
#: For every channel and class the cells, each a list of "subject:values".
_Cells = dict[str, dict[str, list[list[str]]]]


class Ledger:
    """Earlier releases of a site.

    Parameters
    ----------
    path : path
        The file; it is made at the first release.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._content: dict[str, Any] = {"version": _VERSION, "salt": "", "releases": []}
        self._new: dict[str, Any] | None = None
        if not self.path.exists():
            return
        try:
            self._content = json.loads(self.path.read_text(encoding="utf-8"))
            readable = self._content["version"] == _VERSION
            bytes.fromhex(self._content["salt"])
            list(self._content["releases"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path}: not a readable ledger ({error}). Restore it from a backup: "
                "without it a release can reveal subjects of an earlier one."
            ) from error
        if not readable:
            raise InputError(f"{self.path}: written by another version of idfsmec.")

    def check_and_add(
        self,
        study_key: bytes,
        names: NDArray,
        values: Mapping[str, NDArray[np.uint64]],
        members: Mapping[str, Sequence[tuple[int, int, NDArray[np.intp]]]],
        min_subjects: int,
    ) -> None:
        """Refuse a release that reveals a few subjects; keep it for :meth:`write` otherwise.

        ``values`` has for every channel a digest of the values of each of the subjects ``names``,
        ``members`` fold, class and subjects of every cell.
        """
        salt = self._content["salt"] or secrets.token_hex(16)
        subjects = [_hash(salt, name.encode()) for name in names.tolist()]
        cells: _Cells = {}
        for channel, parts in members.items():
            marks = [_hash(salt, digest.tobytes()) for digest in values[channel]]
            by_class = cells.setdefault(channel, {})
            for _, label, rows in parts:
                entries = [f"{subjects[i]}:{marks[i]}" for i in rows.tolist()]
                by_class.setdefault(str(label), []).append(sorted(entries))
        release = {"key": _hash(salt, b"key" + study_key), "cells": cells}
        for number, earlier in enumerate(self._content["releases"], 1):
            if release != earlier:
                self._compare(release, earlier, number, min_subjects)
        self._content["salt"] = salt
        self._new = release

    def _compare(
        self, release: Mapping[str, Any], earlier: Mapping[str, Any], number: int, fewest: int
    ) -> None:
        if release["key"] != earlier["key"] and _subjects(release) & _subjects(earlier):
            raise InputError(
                f"{self.path}: release {number} had subjects of this one with another study key. "
                "Two fold assignments of the same subjects can reveal single ones: use the key of "
                "that release (--study-key)."
            )
        for channel, by_class in release["cells"].items():
            before = earlier["cells"].get(channel, {})
            for label, parts in by_class.items():
                sizes = [
                    len({entry.partition(":")[0] for entry in new ^ old})
                    for new in _unions(parts)
                    for old in _unions(before.get(label, []))
                ]
                few = min(filter(None, sizes), default=fewest)
                if few < fewest:
                    raise InputError(
                        f"{self.path}: sums of channel {channel} differ from those of release "
                        f"{number} by {few} subject{'s' * (few > 1)}, whose values would follow. "
                        f"Release again when at least {fewest} subjects joined or changed, or "
                        "summarise the table as it was."
                    )

    def write(self) -> None:
        """Write the ledger with the release that was checked."""
        if self._new is None:
            return
        if self._new not in self._content["releases"]:
            self._content["releases"].append(self._new)
        with replacing(self.path) as (beside,):
            beside.write_text(json.dumps(self._content), encoding="utf-8")
            beside.chmod(0o600)
        self._new = None


def _hash(salt: str, value: bytes) -> str:
    return hashlib.blake2b(value, key=bytes.fromhex(salt), digest_size=12).hexdigest()


def _subjects(release: Mapping[str, Any]) -> set[str]:
    classes = chain.from_iterable(by_class.values() for by_class in release["cells"].values())
    return {entry.partition(":")[0] for cells in classes for cell in cells for entry in cell}


def _unions(parts: Sequence[Sequence[str]]) -> list[set[str]]:
    """All unions of cells."""
    chosen = (combinations(parts, size) for size in range(1, len(parts) + 1))
    return [set().union(*some) for sizes in chosen for some in sizes]
