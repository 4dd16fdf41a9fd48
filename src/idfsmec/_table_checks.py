"""What a feature table must satisfy: each check says which column or row is wrong and why."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._columns import join_column, split_column
from idfsmec._names import refuse_alike
from idfsmec.errors import InputError

#: Name of a column, and of an index, that says who each row comes from.
SUBJECT = "subject"
GROUPS = (SUBJECT, "label")
#: Name of the column that says at which hospital a row was recorded.
SITE = "site"
RowName = Callable[[int], str]
_COPIES_LATE = int(pd.__version__.split(".")[0]) >= 3


def name_row(position: int) -> str:
    """Name a row of a table in memory.

    Examples
    --------
    >>> name_row(3)
    'row 3 (the first row is 0)'
    """
    return f"row {position} (the first row is 0)"


def clean_columns(columns: list[Any]) -> list[str]:
    """Strip blanks off names of features, and refuse those that no table can have.

    Names that are not text or not ``<channel>__<feature>``, a column that is there twice, and
    channels whose names only look different.
    """
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
    refuse_alike(channels, "channel")
    return list(clean)


def clean_features(X: pd.DataFrame, name_row: RowName = name_row) -> pd.DataFrame:
    """Check a frame of features and return it as float64 with rows 0 ... n - 1.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
    name_row : callable
        Turns a row's position into the words an error uses for it.
    """
    if not isinstance(X, pd.DataFrame):
        raise InputError(f"X must be a pandas DataFrame, got {type(X).__name__}.")
    given, columns = X.columns.tolist(), clean_columns(X.columns.tolist())
    if len(X) == 0:
        raise InputError("The table has no rows.")
    if all(dtype == np.float64 for dtype in X.dtypes):
        clean = _copied(X)
    else:
        values = [_as_numbers(X[column], name_row) for column in given]
        clean = pd.DataFrame(np.column_stack(values))
    clean.columns = pd.Index(columns)
    infinite = np.isinf(clean.to_numpy())
    if infinite.any():
        row, position = np.argwhere(infinite)[0]
        raise InputError(
            f"Column {columns[position]!r} holds infinity in {name_row(int(row))}: "
            "repair the value, or leave it empty if the channel is missing there."
        )
    return clean


def _copied(X: pd.DataFrame) -> pd.DataFrame:
    """Copy numbers row by row, as everybody wants them; pandas 3 does it once somebody writes."""
    if _COPIES_LATE:
        return X.reset_index(drop=True)
    return pd.DataFrame(np.array(X, order="C"), copy=False)


def _as_numbers(column: pd.Series, name_row: RowName) -> np.ndarray:
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
                f"Column {column.name!r} holds {value!r} in {name_row(row)}, which is no "
                "number: features are numbers, and a missing channel is an empty cell (NaN)."
            )
    return numbers


def clean_groups(
    values: Any, what: str, index: pd.Index, name_row: RowName = name_row
) -> pd.Series:
    """Check labels or subjects and return them as text, int64, bool or float64.

    Blanks around text are stripped; names that only look different are refused.

    Parameters
    ----------
    values : Series or array-like of shape (n_samples,)
        A Series must have the index of X, since two orders of rows cannot be told apart; beside
        an X that is indexed by subjects it may also be numbered 0 ... n_samples - 1.
    what : {"label", "subject", "site"}
    index : Index of shape (n_samples,)
        The index of X.
    """
    series = values if isinstance(values, pd.Series) else pd.Series(list(values))
    if len(series) != len(index):
        raise InputError(f"There are {len(series)} {what}s for {len(index)} rows of features.")
    if isinstance(values, pd.Series):
        same_rows(series.index, index, f"{what}s")
    series = series.reset_index(drop=True)
    missing = series.isna().to_numpy()
    if not missing.any() and isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    if pd.api.types.is_object_dtype(series.dtype):
        series = series.infer_objects()
    if pd.api.types.infer_dtype(series, skipna=True) == "string":
        missing = missing | (series.str.strip() == "").to_numpy(dtype=bool, na_value=True)
    if missing.any():
        raise InputError(
            f"The {what} is missing in {name_row(int(missing.argmax()))}: "
            "every sample needs one; fill it in or drop the row."
        )
    return _one_dtype(series, what).rename(what)


def same_rows(own: pd.Index, index: pd.Index, what: str) -> None:
    """Refuse what stands in another order than X, or might."""
    numbered = index.name == SUBJECT and own.equals(pd.RangeIndex(len(index)))
    if not (numbered or own.equals(index)):
        raise InputError(
            f"The {what} have another index than X: bring them into the same order, then use "
            "reset_index(drop=True) on both."
        )


def warn_of_two_sites(subjects: pd.Series, sites: pd.Series | None, stacklevel: int = 3) -> None:
    """Say which names are at several sites: one person who was at both, or two of one name.

    Parameters
    ----------
    subjects, sites : Series of shape (n_samples,)
    stacklevel : int
        As of ``warnings.warn``; the default points at who called the caller.
    """
    if sites is None:
        return
    pairs = pd.DataFrame({SUBJECT: subjects, SITE: sites}).drop_duplicates()
    twice = pairs[SUBJECT][pairs[SUBJECT].duplicated()].unique()
    if len(twice):
        where = ", ".join(map(repr, pairs[SITE][pairs[SUBJECT] == twice[0]]))
        who = (
            f"{twice[0]!r} is"
            if len(twice) == 1
            else f"{twice[0]!r} and {len(twice) - 1} more are"
        )
        warnings.warn(
            f"Subject {who} at several sites ({where}): a name is one person, whose "
            "samples stay together in folds. If these are different people, put the site into "
            "their names.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _one_dtype(series: pd.Series, what: str) -> pd.Series:
    """Bring complete labels or subjects to one of the four dtypes that survive any file."""
    kind = pd.api.types.infer_dtype(series, skipna=False)
    if kind == "string":
        names = [str(value).strip() for value in series]
        refuse_alike(names, what)
        return pd.Series(names)
    if kind == "boolean":
        return series.astype(bool)
    if kind == "integer":
        if series.max() >= 2**63 or series.min() < -(2**63):
            raise InputError(f"A {what} is beyond 64 bits: store the {what}s as text.")
        return series.astype(np.int64)
    if kind in ("floating", "mixed-integer-float"):
        numbers = series.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise InputError(f"A {what} is infinite.")
        # R writes 1 as 1.0: whole numbers are integers, as long as float64 holds them exactly.
        whole = bool((numbers == np.round(numbers)).all()) and numbers.abs().max() < 2**53
        return numbers.astype(np.int64) if whole else numbers
    raise InputError(
        f"The {what}s are of kind {kind!r}: they must be all text, all numbers or all "
        "true/false. Convert them, for example with .astype(str)."
    )


def clean_info(info: Mapping[str, Any], where: str = "info") -> dict[str, Any]:
    """Copy ``info`` down to what JSON holds, so that every file gives it back unchanged.

    Examples
    --------
    >>> clean_info({"sfreq": np.float64(250), "bands": {"alpha": (8, 13)}})
    {'sfreq': 250.0, 'bands': {'alpha': [8, 13]}}
    """
    clean = {}
    for key, value in info.items():
        if not isinstance(key, str):
            raise InputError(f"{where}: key {key!r} is not text.")
        clean[key] = _clean_value(value, f"{where}[{key!r}]")
    return clean


def _clean_value(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, Mapping):
        return clean_info(value, where)
    if isinstance(value, list | tuple | np.ndarray | pd.Index | pd.Series):
        return [_clean_value(item, where) for item in value]
    raise InputError(
        f"{where} holds a {type(value).__name__}, which cannot be written to a file: "
        "use text, numbers, true/false, lists and mappings of these."
    )


def same_info(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Compare two cleaned infos; NaN equals NaN.

    Examples
    --------
    >>> same_info({"a": np.nan}, {"a": np.nan})
    True
    """
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
