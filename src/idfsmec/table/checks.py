"""Check and clean what a feature table is made of; errors name the column or the row."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from idfsmec.errors import InputError
from idfsmec.table.columns import SEPARATOR, join_column, refuse_alike, split_column

#: Names of the columns (and of an index) that say whose a row is, and where it was recorded.
SUBJECT, LABEL, SITE = "subject", "label", "site"
GROUPS = (SUBJECT, LABEL)
#: Columns about rows that mean the same everywhere; text, but for the last two.
KNOWN = ("recording", "session", "condition", "epoch", "onset")
RECORDING, SESSION, CONDITION, EPOCH, ONSET = KNOWN
CHANNEL, REASON = "channel", "reason"
REASON_COLUMNS = [RECORDING, EPOCH, CHANNEL, REASON]
NOT_RECORDED = "not in the recording"
#: The name of an index that has the line of a file that a row was read from.
LINE = "line"
_TEXT = (RECORDING, SESSION, CONDITION)
_NUMBERS = ("integer", "floating", "mixed-integer-float")
_TEXT_DTYPE = pd.Series(["text"]).dtype
_INTEGERS = r"-?(0|[1-9][0-9]{0,17})"


def _name_row(index: pd.Index, position: int) -> str:
    if index.name == LINE:
        return f"line {index[position]}"
    return f"row {position} (the first row is 0)"


def clean_columns(columns: list[Any]) -> list[str]:
    """Strip blanks off names of features, and refuse those that no table can have."""
    if not columns:
        raise InputError("The table has no feature columns.")
    clean: dict[str, str] = {}
    channels: dict[str, None] = {}
    for column in columns:
        if not isinstance(column, str):
            raise InputError(f"Column name {column!r} is not text.")
        channel, feature = (part.strip() for part in split_column(column))
        channels[channel] = None
        name = join_column(channel, feature)
        split_column(name)
        if name in clean:
            also = "" if clean[name] == column else f", as {clean[name]!r} and as {column!r}"
            raise InputError(f"Column {name!r} is there more than once{also}: rename or drop one.")
        clean[name] = column
    refuse_alike(list(channels), "channel")
    return list(clean)


def clean_features(X: pd.DataFrame) -> pd.DataFrame:
    """Check features and return them as float64, rows 0 ... n - 1."""
    if not isinstance(X, pd.DataFrame):
        raise InputError(f"X must be a pandas DataFrame, got {type(X).__name__}.")
    columns = clean_columns(X.columns.tolist())
    if len(X) == 0:
        raise InputError("The table has no rows.")
    if all(dtype == np.float64 for dtype in X.dtypes):
        values = np.array(X, order="C")
    else:
        values = np.column_stack([_as_numbers(X[name]) for name in X])
    clean = pd.DataFrame(values, copy=False)
    clean.columns = pd.Index(columns)
    too_large = (values > 1e300) | (values < -1e300)  # sums would not be finite
    if too_large.any():
        row, position = np.argwhere(too_large)[0]
        value = clean.to_numpy()[row, position]
        what = "infinity" if np.isinf(value) else f"{value:g}"
        raise InputError(
            f"Column {columns[position]!r} holds {what} in {_name_row(X.index, int(row))}: "
            "repair the value, or leave it empty if the channel is missing there."
        )
    return clean


def _as_numbers(column: pd.Series) -> np.ndarray:
    """Return one column as float64, or say which of its cells is no number."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = np.full(len(column), np.nan)
    for row, value in enumerate(column):
        if isinstance(value, float | int | np.number) and not isinstance(value, complex):
            numbers[row] = value
        elif not pd.isna(value):
            raise InputError(
                f"Column {column.name!r} holds {value!r} in {_name_row(column.index, row)}, which "
                "is no number: features are numbers, and a missing channel is an empty cell (NaN)."
            )
    return numbers


def clean_groups(values: Any, what: str, index: pd.Index) -> pd.Series:
    """Check labels, subjects or sites and return them as text, int64, bool or float64.

    Blanks around text are stripped; names that only look different are refused. A Series must
    have the index of X, since two orders of rows cannot be told apart; beside an X that is indexed
    by subjects it may also be numbered 0 ... n_samples - 1.
    """
    series = values if isinstance(values, pd.Series) else pd.Series(list(values))
    if len(series) != len(index):
        raise InputError(f"There are {len(series)} {what}s for {len(index)} rows of features.")
    if isinstance(values, pd.Series):
        _check_index(series.index, index, f"{what}s")
    series = _plain_dtype(series)
    missing = series.isna().to_numpy()
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "string":
        missing = missing | (series.str.strip() == "").to_numpy(dtype=bool, na_value=True)
    if missing.any():
        raise InputError(
            f"The {what} is missing in {_name_row(index, int(missing.argmax()))}: "
            "every sample needs one; fill it in or drop the row."
        )
    if kind == "string":
        names = [str(value).strip() for value in series]
        refuse_alike(names, what)
        return pd.Series(names, name=what)
    if kind == "integer" and (series.max() >= 2**63 or series.min() < -(2**63)):
        raise InputError(f"A {what} is beyond 64 bits: store the {what}s as text.")
    if kind in ("boolean", "integer"):
        return series.astype(bool if kind == "boolean" else np.int64).rename(what)
    if kind not in _NUMBERS:
        raise InputError(
            f"The {what}s are of kind {kind!r}: they must be all text, all numbers or all "
            "true/false. Convert them, for example with .astype(str)."
        )
    numbers = series.astype(np.float64).rename(what)
    if not np.isfinite(numbers).all():
        raise InputError(f"A {what} is infinite.")
    # R writes 1 as 1.0: whole numbers are integers, as long as float64 holds them exactly.
    whole = bool((numbers == np.round(numbers)).all()) and numbers.abs().max() < 2**53
    return numbers.astype(np.int64) if whole else numbers


def _check_index(index: pd.Index, of_features: pd.Index, what: str) -> None:
    """Refuse what stands in another order than X, or might."""
    numbered = of_features.name == SUBJECT and index.equals(pd.RangeIndex(len(of_features)))
    if not (numbered or index.equals(of_features)):
        raise InputError(
            f"The {what} have another index than X: bring them into the same order, then use "
            "reset_index(drop=True) on both."
        )


def _plain_dtype(series: pd.Series) -> pd.Series:
    """Number the rows, and replace categories and objects by what they hold."""
    series = series.reset_index(drop=True)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object if series.isna().any() else series.cat.categories.dtype)
    return series.infer_objects()


def warn_of_two_sites(subjects: pd.Series, sites: pd.Series | None, stacklevel: int = 3) -> None:
    """Warn of subjects at several sites: one who was at both, or two of one name."""
    if sites is None:
        return
    pairs = pd.DataFrame({SUBJECT: subjects, SITE: sites}).drop_duplicates()
    twice = pairs[SUBJECT][pairs[SUBJECT].duplicated()].unique()
    if not len(twice):
        return
    at_sites = ", ".join(map(repr, pairs[SITE][pairs[SUBJECT] == twice[0]]))
    more = f" and {len(twice) - 1} more are" if len(twice) > 1 else " is"
    warnings.warn(
        f"Subject {twice[0]!r}{more} at several sites ({at_sites}): a name is one participant, "
        "whose samples stay together in folds. If these are different participants, put the "
        "site into their names.",
        UserWarning,
        stacklevel=stacklevel,
    )


def clean_info(info: Mapping[str, Any], where: str = "info") -> dict[str, Any]:
    """Copy ``info`` down to what JSON holds, so that every file gives it back unchanged."""
    for key in info:
        if not isinstance(key, str):
            raise InputError(f"{where}: key {key!r} is not text.")
    return {key: _clean_value(value, f"{where}[{key!r}]") for key, value in info.items()}


def _clean_value(value: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return clean_info(value, where)
    if isinstance(value, list | tuple | np.ndarray | pd.Index | pd.Series):
        return [_clean_value(item, where) for item in value]
    raise InputError(
        f"{where} holds a {type(value).__name__}, which cannot be written to a file: "
        "use text, numbers, true/false, lists and mappings of these."
    )


def same_info(info: Any, other: Any) -> bool:
    """Return whether two parts of cleaned infos are equal; NaN equals NaN."""
    return json.dumps(info, sort_keys=True) == json.dumps(other, sort_keys=True)


def part_header(columns: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Tell, in the header of a file, columns about rows from features.

    A column about rows has a known name, or no ``__`` and a place before the first feature;
    behind it, a name without ``__`` is a feature misspelt.
    """
    for name in (*GROUPS, SITE):
        if columns.count(name) != 1 and (name in GROUPS or name in columns):
            begin = ", ".join(repr(column) for column in columns[:5]) or "nothing"
            raise InputError(
                f"needs exactly one column {name!r}, has {columns.count(name)}. A table has the "
                f"columns subject, label, then the features; this one begins with {begin}."
            )
    others = [column for column in columns if column not in (*GROUPS, SITE)]
    joined = [isinstance(column, str) and SEPARATOR in column for column in others]
    first = joined.index(True) if True in joined else 0
    rows = [c for i, c in enumerate(others) if c in KNOWN or (i < first and isinstance(c, str))]
    features = [column for column in others if column not in rows]
    for name in features[1:]:
        if isinstance(name, str) and SEPARATOR not in name and True in joined:
            raise InputError(
                f"Column {name!r} stands among the features, but is not of the form "
                f"'<channel>{SEPARATOR}<feature>': rename it, or put it before the features if it "
                "says something about rows."
            )
    channels = {split_column(column)[0] for column in clean_columns(features)}
    for name in rows:
        if rows.count(name) > 1:
            raise InputError(f"Column {name!r} is there more than once: rename or drop one.")
        channel, underscore, rest = name.partition("_")
        if underscore and channel in channels:
            raise InputError(
                f"Column {name!r} looks like a feature of channel {channel!r}, which would be "
                f"'{channel}{SEPARATOR}{rest}': rename it."
            )
    return rows, features


def clean_rows(rows: Any, index: pd.Index) -> pd.DataFrame | None:
    """Check what is known about rows and bring it to dtypes that survive any file.

    Text (where a blank cell means that it is not known), int64, float64 or bool; float64 where
    nothing is known at all. Known columns come first.
    """
    if rows is None:
        return None
    if not isinstance(rows, pd.DataFrame):
        raise InputError(f"rows must be a pandas DataFrame, got {type(rows).__name__}.")
    if len(rows) != len(index):
        raise InputError(f"rows has {len(rows)} lines for {len(index)} rows of features.")
    _check_index(rows.index, index, "rows")
    names = list(rows.columns)
    for name in names:
        if not isinstance(name, str) or not name or names.count(name) > 1:
            raise InputError(f"rows: column {name!r} must be text and be there once.")
        if name in (*GROUPS, SITE) or SEPARATOR in name:
            raise InputError(
                f"rows: column {name!r} would be taken for something else in a file: rename it."
            )
    if not names:
        return None
    order = [*(name for name in KNOWN if name in names), *(n for n in names if n not in KNOWN)]
    return pd.DataFrame({name: _clean_row_column(rows[name], name) for name in order})


def _clean_row_column(column: pd.Series, name: str) -> pd.Series:
    values = _plain_dtype(column)
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if name in (EPOCH, ONSET) and kind not in (*_NUMBERS, "empty"):
        raise InputError(f"rows: column {name!r} must hold numbers, not values of kind {kind!r}.")
    complete = not values.isna().any()
    if kind == "boolean" and complete and name not in _TEXT:
        return values.astype(bool)
    if name in _TEXT or kind not in (*_NUMBERS, "empty"):
        text = _as_text(values)
        if name not in _TEXT and text.isna().all():
            return text.astype(np.float64)
        if name in (SESSION, CONDITION):
            refuse_alike(text.dropna(), name)
        return text
    if kind == "integer" and complete and values.between(-(2**63), 2**63 - 1).all():
        return values.astype(np.float64 if name == ONSET else np.int64)
    numbers = values.astype(np.float64)
    whole = name == EPOCH and complete and bool((numbers % 1 == 0).all())
    return numbers.astype(np.int64) if whole else numbers


def _as_text(values: pd.Series) -> pd.Series:
    """Turn values into text, with NaN for what is missing or blank."""
    whole = pd.api.types.is_float_dtype(values.dtype)
    cells = [
        None if pd.isna(value) else str(int(value) if whole and value % 1 == 0 else value).strip()
        for value in values
    ]
    return pd.Series([cell or np.nan for cell in cells], dtype=_TEXT_DTYPE)


def infer_column(cells: Iterable[Any], name: str = "") -> pd.Series:
    """Turn the text of a column about rows into integers or numbers, if all of it is one.

    Numbers with zeros in front, such as ``02``, are names.
    """
    absent = ("", "n/a", "na", "nan", "null", "none")
    text = pd.Series(
        [None if pd.isna(cell) or cell.strip().casefold() in absent else cell for cell in cells],
        dtype=object,
    )
    known = text.dropna().str.strip()
    if name in _TEXT or not len(known):
        return text
    if known.str.fullmatch(_INTEGERS).all():
        return pd.to_numeric(text) if len(known) < len(text) else text.astype(np.int64)
    padded = known.str.fullmatch(r"[-+]?0\d.*").any()
    if known.str.fullmatch(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?").all() and not padded:
        return text.astype(np.float64)
    return text


def restore_column(text: pd.Series, kind: str | None) -> pd.Series:
    """Turn the text of a CSV column back into what the file beside it says it was.

    Without one, labels that are all plain integers are integers; subjects and sites stay text,
    because the zeros in front of ``02010002`` are part of the name. What else is known about rows
    becomes numbers where all of it is.
    """
    is_group = text.name in (*GROUPS, SITE)
    if is_group:
        text = text.str.strip()
        if text.fillna("").eq("").any():
            return text  # cleaning names the row
    elif kind is None:
        return pd.Series(infer_column(text, str(text.name)).to_numpy(), text.index)
    if kind is None and text.name == LABEL and text.str.fullmatch(rf"{_INTEGERS}(\.0)?").all():
        text, kind = text.str.removesuffix(".0"), "integer"  # pandas writes floats as 1.0
    try:
        if kind == "boolean":
            return text.map({"true": True, "false": False}.__getitem__).astype(bool)
        if kind == "number":
            return text.replace("", None).astype(np.float64)
        return text.astype(np.int64) if kind == "integer" else text
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(
            f"the column {text.name!r} does not hold the {kind} values that the .info.json file "
            "beside the table says it holds: delete that file if the table was changed by hand."
        ) from error


def described(details: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Put what a study says about each recording side by side, with dtypes as they fit."""
    columns = {}
    for name in dict.fromkeys(name for detail in details for name in detail):
        plain = re.sub(r"_{2,}", "_", name)
        if plain in (*GROUPS, SITE, *KNOWN):  # so that a table takes it for nothing else
            plain = f"{plain}_in_study"
        columns[plain] = infer_column([detail.get(name) for detail in details])
    return pd.DataFrame(columns, index=range(len(details)))


def clean_reasons(
    reasons: Any, rows: pd.DataFrame | None, channels: Iterable[str]
) -> pd.DataFrame | None:
    """Keep the reasons that concern the rows and channels of a table; None if there are none."""
    if reasons is None:
        return None
    if not isinstance(reasons, pd.DataFrame) or set(reasons.columns) != set(REASON_COLUMNS):
        raise InputError(
            f"reasons must be a DataFrame with the columns {', '.join(REASON_COLUMNS)}."
        )
    if rows is None or not {RECORDING, EPOCH} <= set(rows.columns):
        return None  # which row is meant could not be told
    dtypes = {name: np.int64 if name == EPOCH else _TEXT_DTYPE for name in REASON_COLUMNS}
    clean = reasons[REASON_COLUMNS].reset_index(drop=True).astype(dtypes)
    keys = [RECORDING, EPOCH]
    kept = pd.MultiIndex.from_frame(clean[keys]).isin(pd.MultiIndex.from_frame(rows[keys]))
    kept &= clean[CHANNEL].isin(list(channels)).to_numpy()
    clean = clean[kept].drop_duplicates(ignore_index=True)
    return clean if len(clean) else None


def cells_to_reasons(
    recording: str,
    cells: dict[str, dict[str, list[int]]],
    absent: Iterable[str],
    epochs: Iterable[int],
) -> pd.DataFrame:
    """List why channels are missing in one recording.

    ``cells`` is reason to channel to epochs; the recording lacks the channels ``absent``, in all
    its ``epochs``.
    """
    epochs = list(epochs)
    lines = [
        (recording, epoch, channel, reason)
        for reason, of_channel in [*cells.items(), (NOT_RECORDED, dict.fromkeys(absent, epochs))]
        for channel, hits in of_channel.items()
        for epoch in hits
    ]
    return pd.DataFrame(lines, columns=REASON_COLUMNS)
