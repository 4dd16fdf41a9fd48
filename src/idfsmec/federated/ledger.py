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
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._files import replacing
from idfsmec.errors import InputError

#: Name of the file, beside the summaries of a site.
LEDGER = "idfsmec-ledger.json"
_VERSION = 1


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
        if self.path.exists():
            try:
                self._content = json.loads(self.path.read_text(encoding="utf-8"))
                known = self._content["version"] == _VERSION
                bytes.fromhex(self._content["salt"])
                list(self._content["releases"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{self.path}: not a readable ledger ({error}). Restore it from a backup: "
                    "without it a release can reveal subjects of an earlier one."
                ) from error
            if not known:
                raise InputError(f"{self.path}: written by another version of idfsmec.")
        self._new: dict[str, Any] | None = None

    def check_and_add(
        self,
        study_key: bytes,
        names: NDArray,
        values: Mapping[str, NDArray[np.uint64]],
        members: Mapping[str, Sequence[tuple[int, int, NDArray[np.intp]]]],
        min_subjects: int,
    ) -> None:
        """Refuse a release that reveals a few subjects; keep it for :meth:`write` otherwise.

        Parameters
        ----------
        study_key : bytes
        names : ndarray of shape (p,)
            Subjects.
        values : mapping of str to ndarray of shape (p,)
            For every channel a digest of each subject's values.
        members : mapping of str to list of (fold, class, rows)
            For every channel the subjects of every cell.
        min_subjects : int

        Raises
        ------
        InputError
            Names the reason and the remedy.
        """
        salt = self._content["salt"] or secrets.token_hex(16)
        subjects = [_hash(salt, name.encode()) for name in names.tolist()]
        cells: dict[str, dict[str, list[list[str]]]] = {}
        for channel, parts in members.items():
            marks = [_hash(salt, digest.tobytes()) for digest in values[channel]]
            by_class: dict[str, list[list[str]]] = {}
            for _, label, some in parts:
                entries = [f"{subjects[i]}:{marks[i]}" for i in some.tolist()]
                by_class.setdefault(str(label), []).append(sorted(entries))
            cells[channel] = by_class
        release = {"key": _hash(salt, b"key" + study_key), "cells": cells}
        for number, earlier in enumerate(self._content["releases"], 1):
            self._compare(release, earlier, number, min_subjects)
        self._content["salt"] = salt
        self._new = release

    def _compare(
        self, release: Mapping[str, Any], earlier: Mapping[str, Any], number: int, fewest: int
    ) -> None:
        if release == earlier:
            return
        if release["key"] != earlier["key"] and _all_subjects(release) & _all_subjects(earlier):
            raise InputError(
                f"{self.path}: release {number} had subjects of this one with another study key. "
                "Two fold assignments of the same subjects can reveal single ones: use the key of "
                "that release (--study-key)."
            )
        for channel, by_class in release["cells"].items():
            before = earlier["cells"].get(channel, {})
            for label, parts in by_class.items():
                few = _smallest_difference(parts, before.get(label, []))
                if few is not None and few < fewest:
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


def _all_subjects(release: Mapping[str, Any]) -> set[str]:
    return {
        entry.partition(":")[0]
        for by_class in release["cells"].values()
        for parts in by_class.values()
        for part in parts
        for entry in part
    }


def _unions(parts: Sequence[Sequence[str]]) -> list[set[str]]:
    """All unions of cells."""
    return [
        set().union(*chosen)
        for size in range(1, len(parts) + 1)
        for chosen in combinations(parts, size)
    ]


def _smallest_difference(
    parts: Sequence[Sequence[str]], before: Sequence[Sequence[str]]
) -> int | None:
    """Fewest subjects by which unions of cells differ, but for none; None if they never do."""
    sizes = [
        len({entry.partition(":")[0] for entry in new ^ old})
        for new in _unions(parts)
        for old in _unions(before)
    ]
    return min((size for size in sizes if size), default=None)
