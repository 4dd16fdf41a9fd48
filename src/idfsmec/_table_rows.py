"""What is known about each row of a table, and how files tell that from features."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._columns import SEPARATOR, split_column
from idfsmec._names import refuse_alike
from idfsmec._table_checks import GROUPS, SITE, clean_columns, same_rows
from idfsmec.errors import InputError

#: Columns about rows that mean the same everywhere; text, but for the last two.
RECORDING, SESSION, CONDITION, EPOCH, ONSET = KNOWN = (
    "recording",
    "session",
    "condition",
    "epoch",
    "onset",
)
_TEXT = (RECORDING, SESSION, CONDITION)
_WHOLE = r"-?(0|[1-9][0-9]{0,17})"
_NUMBER = r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?"
_ABSENT = ("", "n/a", "na", "nan", "null", "none")


def part_header(columns: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Tell, in the header of a file, columns about rows from features.

    A column about rows has a known name, or no ``__`` and a place before the first feature;
    behind it, a name without ``__`` is a feature misspelt.

    Parameters
    ----------
    columns : sequence
        All names, in their order.

    Returns
    -------
    rows, features : list of str

    Raises
    ------
    InputError
        Without exactly one subject and label, without features, or where a name is not clear.

    Examples
    --------
    >>> part_header(["subject", "label", "age", "Fp1__mean", "epoch"])
    (['age', 'epoch'], ['Fp1__mean'])
    """
    for name in (*GROUPS, SITE):
        if columns.count(name) != 1 and (name in GROUPS or name in columns):
            found = ", ".join(repr(column) for column in columns[:5]) or "nothing"
            raise InputError(
                f"needs exactly one column {name!r}, has {columns.count(name)}. A table has the "
                f"columns subject, label, then the features; this one begins with {found}."
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
    clean_columns(features)
    _refuse_unclear(rows, features)
    return rows, features


def _refuse_unclear(rows: list[str], features: list[str]) -> None:
    """Refuse a column about rows that is there twice, or is rather a feature misspelt."""
    channels = {split_column(column)[0] for column in features}
    for name in rows:
        if rows.count(name) > 1:
            raise InputError(f"Column {name!r} is there more than once: rename or drop one.")
        channel = name.partition("_")[0]
        if "_" in name and channel in channels:
            rest = name.removeprefix(f"{channel}_")
            raise InputError(
                f"Column {name!r} looks like a feature of channel {channel!r}, which would be "
                f"'{channel}{SEPARATOR}{rest}': rename it."
            )


def clean_rows(rows: Any, index: pd.Index) -> pd.DataFrame | None:
    """Check what is known about rows and bring it to dtypes that survive any file.

    Text (where a blank cell means that it is not known), int64, float64 or bool; float64 where
    nothing is known at all. Known columns come first.

    Parameters
    ----------
    rows : DataFrame of shape (n_samples, n_columns) or None
    index : Index of shape (n_samples,)
        The index of X, which ``rows`` must have too; beside an X that is indexed by subjects it
        may be numbered 0 ... n_samples - 1.
    """
    if rows is None:
        return None
    if not isinstance(rows, pd.DataFrame):
        raise InputError(f"rows must be a pandas DataFrame, got {type(rows).__name__}.")
    if len(rows) != len(index):
        raise InputError(f"rows has {len(rows)} lines for {len(index)} rows of features.")
    same_rows(rows.index, index, "rows")
    names = list(rows.columns)
    for name in names:
        if not isinstance(name, str) or not name or names.count(name) > 1:
            raise InputError(f"rows: column {name!r} must be text and be there once.")
        if name in (*GROUPS, SITE) or SEPARATOR in name:
            raise InputError(
                f"rows: column {name!r} would be taken for something else in a file: rename it."
            )
    order = [name for name in KNOWN if name in names]
    order += [name for name in names if name not in KNOWN]
    if not order:
        return None
    return pd.DataFrame({name: _clean_column(rows[name], name) for name in order})


def _clean_column(column: pd.Series, name: str) -> pd.Series:
    values = column.reset_index(drop=True)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if pd.api.types.is_object_dtype(values.dtype):
        values = values.infer_objects()
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if name in (EPOCH, ONSET) and kind not in (*_NUMBERS, "empty"):
        raise InputError(f"rows: column {name!r} must hold numbers, not values of kind {kind!r}.")
    if name in _TEXT or kind not in (*_NUMBERS, "boolean", "empty"):
        text = _as_text(values)
        if name not in _TEXT and text.isna().all():
            return text.astype(np.float64)
        if name in (SESSION, CONDITION):
            refuse_alike(text.dropna(), name)
        return text
    complete = not values.isna().any()
    if kind == "boolean":
        return values.astype(bool) if complete else _as_text(values)
    if kind == "integer" and complete and values.between(-(2**63), 2**63 - 1).all():
        return values.astype(np.float64 if name == ONSET else np.int64)
    numbers = values.astype(np.float64)
    whole = name == EPOCH and complete and bool((numbers % 1 == 0).all())
    return numbers.astype(np.int64) if whole else numbers


_NUMBERS = ("integer", "floating", "mixed-integer-float")


def _as_text(values: pd.Series) -> pd.Series:
    """Turn values into text, blank where they are missing, with NaN for what is blank."""
    whole = pd.api.types.is_float_dtype(values.dtype)
    cells = [
        None if pd.isna(value) else str(int(value) if whole and value % 1 == 0 else value).strip()
        for value in values
    ]
    return pd.Series([cell or np.nan for cell in cells], dtype=pd.Series(["text"]).dtype)


def infer_column(cells: Sequence[str | None], name: str = "") -> pd.Series:
    """Turn the text of a column about rows into integers or numbers, if all of it is one.

    Parameters
    ----------
    cells : sequence of str or None
        None and ``n/a``, as BIDS writes it, mean that it is not known.
    name : str
        The column's; recording, session and condition stay text.

    Examples
    --------
    >>> infer_column(["31", "n/a"]).tolist(), infer_column(["02", "11"]).tolist()
    ([31.0, nan], ['02', '11'])
    """
    text = pd.Series(
        [None if cell is None or cell.strip().casefold() in _ABSENT else cell for cell in cells],
        dtype=object,
    )
    known = text.dropna().str.strip()
    if name in _TEXT or not len(known):
        return text
    if known.str.fullmatch(_WHOLE).all():
        return pd.to_numeric(text) if len(known) < len(text) else text.astype(np.int64)
    padded = known.str.fullmatch(r"[-+]?0\d.*").any()
    if known.str.fullmatch(_NUMBER).all() and not padded:
        return text.astype(np.float64)
    return text


def described(details: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Put what a study says about each recording side by side, with dtypes as they fit.

    Examples
    --------
    >>> described([{"age": "31", "sex": "f"}, {"sex": "m"}])
        age sex
    0  31.0   f
    1   NaN   m
    """
    names = dict.fromkeys(name for one in details for name in one)
    return pd.DataFrame(
        {_free(name): infer_column([one.get(name) for one in details]) for name in names},
        index=range(len(details)),
    )


def _free(name: str) -> str:
    """Name a study's column so that a table takes it for nothing else."""
    plain = re.sub(r"_{2,}", "_", name)
    return f"{plain}_in_study" if plain in (*GROUPS, SITE, *KNOWN) else plain
