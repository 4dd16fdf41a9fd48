"""MATLAB files and spreadsheets of data releases, with errors that name the file."""

from __future__ import annotations

import unicodedata
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from idfsmec.errors import InputError
from idfsmec.recordings._mat_elements import check_elements


def load_mat(path: Path, **options: Any) -> dict[str, Any]:
    """Read a MATLAB file up to version 7."""
    from scipy.io import loadmat

    try:
        check_elements(path)
        return loadmat(path, **options)
    except NotImplementedError as error:
        raise InputError(
            f"{path}: this file is of MATLAB version 7.3, the release is not. Save it again in "
            "MATLAB with save(..., '-v7')."
        ) from error
    except Exception as error:
        # scipy raises anything on a damaged file, from ValueError to zlib.error.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: not a readable MATLAB file ({reason}).") from error


def load_sheet(path: Path, sheet: str | int = 0) -> pd.DataFrame:
    """Read a sheet of an Excel file as text, with folded column names and without NaN.

    Full-width signs, as in ``education（years）``, become plain ones.
    """
    try:
        with warnings.catch_warnings():
            # openpyxl warns about formatting it does not keep, which nobody needs here.
            warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")
            frame = pd.read_excel(path, sheet_name=sheet, dtype=str, keep_default_na=False)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: not a readable subject table ({reason}).") from error
    frame.columns = pd.Index([fold(str(name)) for name in frame.columns])
    return frame.apply(lambda column: column.map(lambda cell: str(cell).strip()))


def fold(text: str) -> str:
    """Write text in plain signs and small letters, for comparing.

    Examples
    --------
    >>> fold(" Education（years） ")
    'education(years)'
    """
    return unicodedata.normalize("NFKC", text).strip().casefold()


def need_columns(frame: pd.DataFrame, names: tuple[str, ...], path: Path) -> None:
    """Refuse a subject table without the columns that are needed."""
    for name in names:
        if name not in frame.columns:
            raise InputError(
                f"{path}: column {name!r} is missing; found: {', '.join(map(str, frame.columns))}."
            )
