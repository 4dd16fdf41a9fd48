"""Recognise participants that a model was trained on, by hashes of their rounded values.

A digest of the whole training table lies beside the model's file, not in it. Hashes of single
samples are part of a model only where that was asked for: whoever has a participant's values can
then test whether the model was trained on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._files import write_json
from idfsmec.errors import InputError
from idfsmec.metrics import Floats

# Values are hashed by their leading digits: another machine computes the last ones differently.
_DIGITS = 4
# So many samples of a participant are remembered: those with the smallest hashes, so that of half
# of a participant's samples one is among them, with a probability of 1 - 1/2^8.
_SAMPLES = 8


def digest_samples(X: pd.DataFrame) -> str:
    """Hash samples, whatever their order, subjects and labels are."""
    values = X.to_numpy(dtype=np.float64)
    hashes = _hash_rows(values[~np.isnan(values).all(axis=1)], list(X.columns), b"")
    return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()


def remember_samples(X: pd.DataFrame, subjects: Iterable[Any]) -> dict[str, Any]:
    """Return keyed hashes of a few samples of each subject, in an order that names nobody.

    The key is that of the whole table: hashes of a subject differ between tables.
    """
    key = digest_samples(X)[:32]
    rows = _hash_rows(X.to_numpy(dtype=np.float64), list(X.columns), bytes.fromhex(key))
    frame = pd.DataFrame({"subject": list(subjects), "hash": rows}).sort_values("hash")
    return {"key": key, "samples": sorted(frame.groupby("subject")["hash"].head(_SAMPLES))}


def find_remembered(
    X: pd.DataFrame, subjects: Iterable[Any], remembered: Mapping[str, Any]
) -> set[str]:
    """Return the subjects one of whose samples is remembered."""
    if not remembered:
        return set()
    key, known = bytes.fromhex(remembered["key"]), set(remembered["samples"])
    hashes = _hash_rows(X.to_numpy(dtype=np.float64), list(X.columns), key)
    pairs = zip(subjects, hashes, strict=True)
    return {str(subject) for subject, value in pairs if value in known}


def _hash_rows(values: Floats, columns: Sequence[str], key: bytes) -> list[str]:
    """Hash the rounded values of each sample, with the names of the columns."""
    with np.errstate(divide="ignore"):
        exponents = np.floor(np.log10(np.abs(values)))
    exponents = np.where(np.isfinite(exponents), np.maximum(exponents, -300.0), 0.0)
    digits = np.round(values / 10.0 ** (exponents - _DIGITS + 1))
    carried = np.abs(digits) == 10.0**_DIGITS
    digits, exponents = np.where(carried, digits / 10, digits), exponents + carried
    # No number has this exponent, so that 0 and a missing value differ.
    exponents = np.where(np.isnan(digits), 1000, exponents)
    both = np.stack([np.nan_to_num(digits), exponents], axis=2).astype("<i4")
    start = hashlib.blake2b("\n".join(columns).encode(), key=key, digest_size=8)
    hashes = []
    for row in both:
        one = start.copy()
        one.update(row.tobytes())
        hashes.append(one.hexdigest())
    return hashes


def digest_file(path: Path) -> Path:
    """Return where the digest of a model's training table lies."""
    return path.with_name(f"{path.name}.training.json")


def write_digest(path: Path, checksum: str, digest: str) -> None:
    """Write the digest of the training table beside a model."""
    write_json(digest_file(path), {"model": checksum, "digest": digest})


def read_digest(path: Path, checksum: str) -> str:
    """Return the digest beside a model; empty where there is none, or that of another model."""
    file = digest_file(path)
    if not file.is_file():
        return ""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        return str(stored["digest"]) if stored["model"] == checksum else ""
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file}: is no digest of a training table; remove it, or train the model again."
        ) from error
