"""Files of summaries: NumPy's npz without pickle, with a version and a checksum."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._columns import channel_columns
from idfsmec._files import replacing
from idfsmec._version import __version__
from idfsmec.errors import InputError
from idfsmec.solver import ChannelSums

if TYPE_CHECKING:
    from idfsmec.selection.idfsmec.summary import Summary

#: Raised when files of before can no longer be read.
FORMAT_VERSION = 2
#: How the files end.
ENDING = ".summary"
_MOST_BYTES = 2**31  # unpacked; no study has as many
_WORDS = ("columns", "column_channels", "labels", "withheld")
_PRODUCTS = ("sum_xx", "sum_mm")
_ARRAYS = (
    *("class_total", "fold_people", "seen", "have", "shift", "scale"),
    *("count", "sum_x", "sum_xx", "people", "sum_m", "sum_mm"),
)


def write(path: Path, summary: Summary) -> None:
    """Write a summary."""
    places = np.concatenate(summary.places)
    order = np.argsort(places)
    sums = summary.sums
    about = {
        "format": "idfsmec summary",
        "format_version": FORMAT_VERSION,
        "idfsmec": __version__,
        **{name: list(getattr(summary, name)) for name in _WORDS},
        "settings": dict(summary.settings),
        "min_people": summary.min_people,
        "n_tables": summary.n_tables,
    }
    arrays = {
        "class_total": summary.class_total,
        "fold_people": summary.fold_people,
        "seen": summary.seen,
        "have": summary.have,
        "shift": np.concatenate([one.shift for one in sums])[order],
        "scale": np.concatenate([one.scale for one in sums])[order],
    }
    for name in ("count", "people"):
        arrays[name] = np.stack([getattr(one, name) for one in sums])
    for name in ("sum_x", "sum_m"):
        arrays[name] = np.concatenate([getattr(one, name) for one in sums], axis=-1)[..., order]
    for name in _PRODUCTS:
        arrays[name] = np.concatenate([_half(getattr(one, name)) for one in sums], axis=-1)
    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8)
    digest = np.frombuffer(_checksum(text, arrays).encode(), dtype=np.uint8)
    contents: dict[str, Any] = {"about": text, "checksum": digest, **arrays}
    with replacing(path) as (beside,), beside.open("wb") as file:
        np.savez_compressed(file, **contents)


def _half(products: NDArray) -> NDArray:
    """Products of each pair of features once, (..., d, d) to (..., d (d + 1) / 2)."""
    return products[(..., *np.triu_indices(products.shape[-1]))]


def _whole(half: NDArray, size: int) -> NDArray:
    """What :func:`_half` halved."""
    products = np.zeros((*half.shape[:-1], size, size))
    above, beside = np.triu_indices(size)
    products[..., above, beside] = half
    products[..., beside, above] = half
    return products


def _checksum(text: NDArray, arrays: dict[str, NDArray]) -> str:
    """SHA-256 of the description and of every array: name, shape, little-endian bytes."""
    found = hashlib.sha256(text.tobytes())
    for name in _ARRAYS:
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        found.update(f"{name}{array.shape}".encode() + little.tobytes())
    return found.hexdigest()


def read(path: Path) -> dict[str, Any]:
    """Read what a summary is made of."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > _MOST_BYTES:
                raise ValueError("too large")
        with np.load(path, allow_pickle=False) as loaded:
            text, said = loaded["about"], loaded["checksum"].tobytes().decode()
            about = json.loads(text.tobytes())
            version = int(about["format_version"])
            if version == FORMAT_VERSION:
                arrays = {name: loaded[name] for name in _ARRAYS}
    except Exception as error:
        # A damaged archive raises anything, from BadZipFile to UnicodeDecodeError.
        raise InputError(f"{path}: not a readable summary of idfsmec ({error}).") from error
    if version != FORMAT_VERSION:
        newer = version > FORMAT_VERSION
        raise InputError(
            f"{path}: written in format version {version} by "
            + (
                f"a newer idfsmec, and this one reads {FORMAT_VERSION}: upgrade idfsmec."
                if newer
                else "an older idfsmec, without the sums over people that channels are judged by: "
                "have the hospital summarise its table anew."
            )
        )
    if _checksum(text, arrays) != said:
        raise InputError(f"{path}: damaged or changed: its checksum does not fit.")
    try:
        return _parts(about, arrays)
    except Exception as error:
        raise InputError(f"{path}: a summary whose parts do not fit together.") from error


def _parts(about: dict[str, Any], arrays: dict[str, NDArray]) -> dict[str, Any]:
    words = {name: tuple(about[name]) for name in _WORDS}
    places = channel_columns(list(words["column_channels"]), len(words["columns"]), None)[1]
    sums, first = [], 0
    for at, own in enumerate(places):
        last = first + own.size * (own.size + 1) // 2
        parts = {name: arrays[name][at] for name in ("count", "people")}
        parts |= {name: arrays[name][..., own] for name in ("sum_x", "sum_m", "shift", "scale")}
        for name in _PRODUCTS:
            parts[name] = _whole(arrays[name][..., first:last], own.size)
        sums.append(ChannelSums(**parts))
        first = last
    if first != arrays["sum_xx"].shape[-1]:
        raise ValueError("products of other columns")
    return {
        **words,
        "sums": tuple(sums),
        "class_total": arrays["class_total"],
        "fold_people": arrays["fold_people"],
        "seen": arrays["seen"],
        "have": arrays["have"],
        "settings": about["settings"],
        "min_people": int(about["min_people"]),
        "n_tables": int(about["n_tables"]),
    }
