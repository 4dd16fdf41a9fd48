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
from idfsmec.solver import ChannelSums, PatternSums

if TYPE_CHECKING:
    from idfsmec.summaries.summary import Summary

#: Raised when files of before can no longer be read.
FORMAT_VERSION = 2
#: Of files that have products between channels besides.
WITH_PATTERNS = 3
#: How the files end.
ENDING = ".summary"
_MOST_BYTES = 2**31  # unpacked; no study has as many
_WORDS = ("columns", "column_channels", "labels", "withheld")
_PRODUCTS = ("sum_xx", "sum_mm")
_ARRAYS = (
    *("class_total", "fold_people", "seen", "have", "shift", "scale"),
    *("count", "sum_x", "sum_xx", "people", "sum_m", "sum_mm"),
)
_OF_PATTERNS = (
    *("pattern_columns", "pattern_people", "pattern_count", "pattern_shift", "pattern_scale"),
    *("pattern_sum_x", "pattern_sum_xx"),
)


def write(path: Path, summary: Summary) -> None:
    """Write a summary."""
    places = np.concatenate(summary.places)
    order = np.argsort(places)
    sums = summary.sums
    about = {
        "format": "idfsmec summary",
        "format_version": WITH_PATTERNS if summary.patterns else FORMAT_VERSION,
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
    if summary.patterns:
        arrays |= _pattern_arrays(summary)
    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8)
    digest = np.frombuffer(_checksum(text, arrays).encode(), dtype=np.uint8)
    contents: dict[str, Any] = {"about": text, "checksum": digest, **arrays}
    with replacing(path) as (beside,), beside.open("wb") as file:
        np.savez_compressed(file, **contents)


def _pattern_arrays(summary: Summary) -> dict[str, NDArray]:
    """Patterns of channels one behind the other."""
    one_of = summary.patterns
    there = [np.isin(summary.columns, one.columns) for one in one_of]
    arrays = {
        "pattern_columns": np.stack(there),
        "pattern_people": np.stack([one.people for one in one_of]),
        "pattern_count": np.stack([one.count for one in one_of]),
    }
    for name in ("shift", "scale", "sum_x"):
        arrays[f"pattern_{name}"] = np.concatenate([getattr(one, name) for one in one_of], axis=-1)
    arrays["pattern_sum_xx"] = np.concatenate([_half(one.sum_xx) for one in one_of], axis=-1)
    return arrays


def _pattern_parts(
    columns: tuple[str, ...], arrays: dict[str, NDArray]
) -> tuple[PatternSums, ...]:
    """What :func:`_pattern_arrays` put together."""
    found, first, first_product = [], 0, 0
    for at, there in enumerate(arrays["pattern_columns"]):
        names = tuple(np.array(columns, dtype=object)[there].tolist())
        d = len(names)
        last, last_product = first + d, first_product + d * (d + 1) // 2
        own = {name: arrays[f"pattern_{name}"][at] for name in ("people", "count")}
        for name in ("shift", "scale", "sum_x"):
            own[name] = arrays[f"pattern_{name}"][..., first:last]
        half = arrays["pattern_sum_xx"][..., first_product:last_product]
        found.append(PatternSums(names, sum_xx=_whole(half, d), **own))
        first, first_product = last, last_product
    if first_product != arrays["pattern_sum_xx"].shape[-1]:
        raise ValueError("products of other columns")
    return tuple(found)


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
    for name in (one for one in (*_ARRAYS, *_OF_PATTERNS) if one in arrays):
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
            if version in (FORMAT_VERSION, WITH_PATTERNS):
                more = _OF_PATTERNS if version == WITH_PATTERNS else ()
                arrays = {name: loaded[name] for name in (*_ARRAYS, *more)}
    except Exception as error:
        # A damaged archive raises anything, from BadZipFile to UnicodeDecodeError.
        raise InputError(f"{path}: not a readable summary of idfsmec ({error}).") from error
    if version not in (FORMAT_VERSION, WITH_PATTERNS):
        newer = version > WITH_PATTERNS
        raise InputError(
            f"{path}: written in format version {version} by "
            + (
                f"a newer idfsmec, and this one reads up to {WITH_PATTERNS}: upgrade idfsmec."
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
        "patterns": _pattern_parts(words["columns"], arrays) if _OF_PATTERNS[0] in arrays else (),
    }
