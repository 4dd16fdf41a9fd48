"""Columns of a table: their names and labels, which are features, names that look alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idfsmec.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SEPARATOR = "__"
#: Names of the columns (and of an index) that say whose a row is, and where it was recorded.
SUBJECT, LABEL, SITE = "subject", "label", "site"
GROUPS = (SUBJECT, LABEL)
#: Columns about rows that mean the same everywhere; text, but for the last two.
KNOWN = ("recording", "session", "condition", "epoch", "onset")
RECORDING, SESSION, CONDITION, EPOCH, ONSET = KNOWN
TEXT = KNOWN[:3]
#: The name of an index that has the line of a file that a row was read from.
LINE = "line"
#: Features with one column per frequency band, and features with one column.
_BANDED = {
    "ap": "absolute power",
    "log_ap": "log absolute power",
    "de": "differential entropy",
    "wpli": "weighted phase lag index",
    "coherence": "coherence",
}
_FEATURES = {
    "ap_beta_theta_ratio": "beta/theta power ratio",
    "log_ap_beta_theta_ratio": "log beta/theta power ratio",
    "log_variance": "log variance",
    "nsi": "non-stationary index",
    "hoc": "higher-order crossings",
    "c0": "C0 complexity",
    "spectral_entropy": "spectral entropy",
    "shannon_entropy": "Shannon entropy",
    "permutation_entropy": "permutation entropy",
    "lempel_ziv": "Lempel-Ziv complexity",
    "hjorth_mobility": "Hjorth mobility",
    "hjorth_complexity": "Hjorth complexity",
    "aperiodic_exponent": "aperiodic exponent",
    "aperiodic_offset": "aperiodic offset",
    "alpha_peak": "alpha peak frequency",
    "alpha_asymmetry": "alpha asymmetry",
}
# In front of digits, but not behind a point: 0.05 and 0.5 are two doses.
_LEADING_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")


# Signs that Unicode lets programs leave out, besides those of its categories Cf and Cc.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0]"
)


def join_column(channel: object, feature: object) -> str:
    """Name the column of a channel's feature, such as ``Fp1__ap_alpha``."""
    return f"{channel}{SEPARATOR}{feature}"


def join_columns(channels: Iterable[object], features: Iterable[object]) -> list[str]:
    """Name the columns of channels and features side by side."""
    return [join_column(*pair) for pair in zip(channels, features, strict=True)]


def split_column(column: str) -> tuple[str, str]:
    """Split a column name at its last ``__`` into channel and feature."""
    channel, separator, feature = column.rpartition(SEPARATOR)
    if not (separator and channel and feature):
        raise InputError(
            f"Column {column!r} is not of the form '<channel>{SEPARATOR}<feature>' "
            f"(such as 'Fp1{SEPARATOR}ap_alpha'): rename it, or drop it if it is no feature."
        )
    return channel, feature


def feature_label(feature: str) -> str:
    """Return the long name of a feature; features of users' own keep their name.

    >>> feature_label("de_alpha"), feature_label("mine_alpha")
    ('differential entropy (alpha)', 'mine_alpha')
    """
    family, _, band = feature.rpartition("_")
    if feature not in _FEATURES and family in _BANDED:
        return f"{_BANDED[family]} ({band})"
    return _FEATURES.get(feature, feature)


def column_label(column: str) -> str:
    """Return a column as readers name it; a name without a channel stays as it is."""
    try:
        channel, feature = split_column(column)
    except InputError:
        return column
    return f"{feature_label(feature)} at {channel}"


def feature_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a table's frame that are features."""
    return [name for name in map(str, frame.columns) if SEPARATOR in name]


def channel_columns(
    channels: ArrayLike | None, n_features: int, feature_names: Sequence[str] | None
) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    """Return names of channels, in order of first appearance, and the columns of each.

    Without ``channels`` (a label per feature), a channel is the part of the column name before the
    last ``"__"``; without such names, all features form one channel.
    """
    if channels is not None:
        labels = np.asarray(channels)
        if labels.shape != (n_features,):
            raise ValueError(
                f"channels must give one label for each of the {n_features} features, "
                f"but has shape {labels.shape}."
            )
    elif feature_names is not None and all(SEPARATOR in str(name) for name in feature_names):
        labels = np.array([str(name).rpartition(SEPARATOR)[0] for name in feature_names])
    else:
        labels = np.full(n_features, "all features")
    names, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    columns = [np.flatnonzero(codes == code) for code in order]
    return names[order], columns


def channel_codes(columns: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    """Return the number of every feature's channel, from the columns of every channel."""
    codes = np.empty(sum(indices.size for indices in columns), dtype=np.intp)
    for code, indices in enumerate(columns):
        codes[indices] = code
    return codes


def observed_channels(
    X: NDArray[np.float64], columns: Sequence[NDArray[np.intp]]
) -> NDArray[np.bool_]:
    """Return which channels each sample has (none of their features is NaN), by sample."""
    missing = np.isnan(X)
    return np.stack([~missing[:, indices].any(axis=1) for indices in columns], axis=1)


def fold(text: str) -> str:
    """Write text in plain, visible signs and small letters, for comparing."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    visible = (
        sign for sign in plain if sign.isspace() or unicodedata.category(sign) not in ("Cf", "Cc")
    )
    return "".join(visible).strip().casefold()


def same_name(text: str) -> str:
    """Return what names that look alike but for case and leading zeros have in common."""
    return _LEADING_ZEROS.sub("", " ".join(fold(text).split()))


def refuse_alike(names: Iterable[str], what: str, where: str = "") -> None:
    """Refuse two spellings of what must be one name; a mapping says of each where it stands."""

    def quote(name: str) -> str:
        return f"{name!r} ({names[name]})" if isinstance(names, Mapping) else repr(name)

    seen: dict[str, str] = {}
    for name in dict.fromkeys(names):
        first = seen.setdefault(same_name(name), name)
        if first != name:
            begin = f"{where}: the" if where else "The"
            raise InputError(
                f"{begin} {what}s {quote(first)} and {quote(name)} differ only in case, width, "
                "blanks, invisible signs or leading zeros: spell them alike if they are the same, "
                "or rename one of them."
            )


def clean_columns(columns: list[Any]) -> list[str]:
    """Strip blanks off names of features, and refuse those that no table can have."""
    if not columns:
        raise InputError("The table has no feature columns.")
    clean: dict[str, str] = {}
    for column in columns:
        if not isinstance(column, str):
            raise InputError(f"Column name {column!r} is not text.")
        channel, feature = (part.strip() for part in split_column(column))
        name = join_column(channel, feature)
        split_column(name)
        if name in clean:
            also = "" if clean[name] == column else f", as {clean[name]!r} and as {column!r}"
            raise InputError(f"Column {name!r} occurs more than once{also}: rename or drop one.")
        clean[name] = column
    refuse_alike([split_column(name)[0] for name in clean], "channel")
    return list(clean)


def part_header(columns: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Separate columns about rows from features in the header of a file.

    A column about rows has a known name, or no ``__`` and a place before the first feature.
    """
    for name in (*GROUPS, SITE):
        if columns.count(name) != 1 and (name in GROUPS or name in columns):
            begin = ", ".join(repr(column) for column in columns[:5]) or "nothing"
            raise InputError(
                f"needs exactly one column {name!r}, has {columns.count(name)}. A table has the "
                f"columns subject, label, then the features; this one begins with {begin}."
            )
    remaining = [column for column in columns if column not in (*GROUPS, SITE)]
    joined = [isinstance(column, str) and SEPARATOR in column for column in remaining]
    first = joined.index(True) if True in joined else 0
    rows = [c for i, c in enumerate(remaining) if c in KNOWN or (i < first and isinstance(c, str))]
    features = [column for column in remaining if column not in rows]
    for name in features[1:]:
        if isinstance(name, str) and SEPARATOR not in name and True in joined:
            raise InputError(
                f"Column {name!r} stands among the features, but is not of the form "
                f"'<channel>{SEPARATOR}<feature>': rename it, or put it before the features if "
                "it describes rows."
            )
    channels = {split_column(column)[0] for column in clean_columns(features)}
    for name in rows:
        if rows.count(name) > 1:
            raise InputError(f"Column {name!r} occurs more than once: rename or drop one.")
        channel, underscore, rest = name.partition("_")
        if underscore and channel in channels:
            raise InputError(
                f"Column {name!r} looks like a feature of channel {channel!r}, which would be "
                f"'{channel}{SEPARATOR}{rest}': rename it."
            )
    return rows, features
