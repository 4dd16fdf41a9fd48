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
FORMAT_VERSION = 1
#: How the files end.
ENDING = ".summary"
_MOST_BYTES = 2**31  # unpacked; no study has as many
_WORDS = ("columns", "column_channels", "labels", "withheld")
_ARRAYS = ("class_total", "people", "have", "count", "sum_x", "sum_xx", "shift", "scale")


def write(path: Path, summary: Summary) -> None:
    """Write a summary."""
    places = np.concatenate(summary.places)
    order = np.argsort(places)
    n_cells = summary.class_total.shape
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
        "people": summary.people,
        "have": summary.have,
        "count": np.stack([one.count for one in summary.sums]),
        "sum_x": np.concatenate([one.sum_x for one in summary.sums], axis=-1)[..., order],
        "sum_xx": np.concatenate([one.sum_xx.reshape(*n_cells, -1) for one in summary.sums], -1),
        "shift": np.concatenate([one.shift for one in summary.sums])[order],
        "scale": np.concatenate([one.scale for one in summary.sums])[order],
    }
    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8)
    digest = np.frombuffer(_checksum(text, arrays).encode(), dtype=np.uint8)
    contents: dict[str, Any] = {"about": text, "checksum": digest, **arrays}
    with replacing(path) as (beside,), beside.open("wb") as file:
        np.savez_compressed(file, **contents)


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
            if version <= FORMAT_VERSION:
                arrays = {name: loaded[name] for name in _ARRAYS}
    except Exception as error:
        # A damaged archive raises anything, from BadZipFile to UnicodeDecodeError.
        raise InputError(f"{path}: not a readable summary of idfsmec ({error}).") from error
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path}: written in format version {version} by a newer idfsmec, and this one reads "
            f"up to {FORMAT_VERSION}: upgrade idfsmec."
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
        shape = (*arrays["count"][at].shape, own.size, own.size)
        last = first + own.size**2
        sums.append(
            ChannelSums(
                arrays["count"][at],
                arrays["sum_x"][..., own],
                arrays["sum_xx"][..., first:last].reshape(shape),
                arrays["shift"][own],
                arrays["scale"][own],
            )
        )
        first = last
    if first != arrays["sum_xx"].shape[-1]:
        raise ValueError("products of other columns")
    return {
        **words,
        "sums": tuple(sums),
        "class_total": arrays["class_total"],
        "people": arrays["people"],
        "have": arrays["have"],
        "settings": about["settings"],
        "min_people": int(about["min_people"]),
        "n_tables": int(about["n_tables"]),
    }
