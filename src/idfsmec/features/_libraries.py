"""Libraries that only some features need, imported when one of these is computed."""

from __future__ import annotations

import importlib
from typing import Any

from idfsmec.errors import InputError


def library(name: str, extra: str) -> Any:
    """Import a module, or say which extra of this package brings it.

    Examples
    --------
    >>> library("math", "spectra").sqrt(4)
    2.0
    >>> library("no_such_library", "spectra")
    Traceback (most recent call last):
    idfsmec.errors.InputError: This feature needs the package no_such_library, which is not
    installed: pip install 'idfsmec[spectra]'.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"This feature needs the package {name.partition('.')[0]}, which is not installed: "
            f"pip install 'idfsmec[{extra}]'."
        ) from None
