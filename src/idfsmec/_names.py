"""Names that people type: what only looks different is not two things."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from idfsmec.errors import InputError

# In front of digits, but not behind a point: 0.05 and 0.5 are two doses.
_ZEROS = re.compile(r"(?<![\d.,])0+(?=\d)")


def fold(text: str) -> str:
    """Write text in plain signs and small letters, for comparing.

    Examples
    --------
    >>> fold(" Education（years） ")
    'education(years)'
    """
    return unicodedata.normalize("NFKC", text).strip().casefold()


def same_name(text: str) -> str:
    """Give what names that differ only in case, width, blanks and zeros have in common.

    Examples
    --------
    >>> same_name("S007") == same_name("ｓ7"), same_name("10") == same_name("1")
    (True, False)
    """
    return _ZEROS.sub("", " ".join(fold(text).split()))


def refuse_alike(names: Iterable[str], what: str, where: str = "") -> None:
    """Refuse two spellings of what must be one name.

    Parameters
    ----------
    names : iterable of str
        A mapping says of each where it stands.
    what : str
        What they name, such as "subject".
    where : str
        The beginning of the message, such as a file's name.

    Examples
    --------
    >>> refuse_alike(["s01", "S01"], "subject")
    Traceback (most recent call last):
    idfsmec.errors.InputError: The subjects 's01' and 'S01' differ only in case, width, blanks or
    leading zeros: spell them alike if they are one, or rename one of them.
    """

    def tell(name: str) -> str:
        return f"{name!r} ({names[name]})" if isinstance(names, Mapping) else repr(name)

    seen: dict[str, str] = {}
    for name in dict.fromkeys(names):
        first = seen.setdefault(same_name(name), name)
        if first != name:
            begin = f"{where}: the" if where else "The"
            raise InputError(
                f"{begin} {what}s {tell(first)} and {tell(name)} differ only in case, width, "
                "blanks or leading zeros: spell them alike if they are one, or rename one of "
                "them."
            )
