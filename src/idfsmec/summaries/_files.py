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
from idfsmec.errors import InputError
from idfsmec.solver import ChannelSums, PatternSums

if TYPE_CHECKING:
    pass

#: Raised when files of before can no longer be read.
FORMAT_VERSION = 2
#: Of files that have products between channels besides.
WITH_PATTERNS = 3
#: Why no file is written.
NOT_WRITTEN = (
    "a summary file of this version can reveal single participants; wait for the next version. "
    "In Python summarise() works as before, as long as the summary stays where its table is."
)
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


def _pattern_parts(
    columns: tuple[str, ...], arrays: dict[str, NDArray]
) -> tuple[PatternSums, ...]:
    """Patterns of channels, which stand one behind the other."""
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


def _whole(half: NDArray, size: int) -> NDArray:
    """Whole products of their upper halves."""
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
