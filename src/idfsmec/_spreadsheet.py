"""CSV files for people: a cell that a spreadsheet would run as a formula becomes plain text."""

from __future__ import annotations

import pandas as pd

# What Excel, LibreOffice and Google Sheets take for the beginning of a formula, also full-width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def neutralise(frame: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before text cells and column names that would run as formulas.

    Names of channels and subjects come from files that somebody else wrote. Numbers stay as
    they are; so does text that begins with anything else.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    DataFrame
        A copy to be written with ``to_csv``.

    Examples
    --------
    >>> neutralise(pd.DataFrame({"channel": ["Fp1", "=HYPERLINK(A1)"], "score": [-1.5, 2.0]}))
               channel  score
    0              Fp1   -1.5
    1  '=HYPERLINK(A1)    2.0
    """
    safe = frame.copy()
    for place, kind in enumerate(safe.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)):
            safe.isetitem(place, [_plain(cell) for cell in safe.iloc[:, place]])
    safe.columns = pd.Index([_plain(name) for name in safe.columns])
    return safe


def _plain(cell: object) -> object:
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA):
        return f"'{cell}"
    return cell
