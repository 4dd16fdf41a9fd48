"""Who counts as depressed in PRED+CT d003: the rules that papers use, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from idfsmec.errors import InputError

DEPRESSED = "depressed"
CONTROL = "control"

CURRENT, PAST, WITHOUT, NO_INTERVIEW = 1, 2, 50, 99
# The two releases write the outcome of the interview in their own ways.
_OUTCOMES = {
    "current mdd": CURRENT,
    "past mdd": PAST,
    "do not meet criterion for current or past mdd": WITHOUT,
    "no interview": NO_INTERVIEW,
}


@dataclass(frozen=True)
class Participant:
    """What the releases say about one subject that labels depend on."""

    number: str
    bdi: float | None
    interview: int | None


def _bdi_from_13(person: Participant) -> str | None:
    return None if person.bdi is None else DEPRESSED if person.bdi >= 13 else CONTROL


def _bdi_above_13(person: Participant) -> str | None:
    return None if person.bdi is None else DEPRESSED if person.bdi > 13 else CONTROL


def _bdi_extremes(person: Participant) -> str | None:
    if person.bdi is None or 8 <= person.bdi <= 13:
        return None
    return DEPRESSED if person.bdi > 13 else CONTROL


def _is_control(person: Participant) -> bool:
    """Low score and hence never invited: only those with a high BDI were interviewed."""
    return person.interview == NO_INTERVIEW and person.bdi is not None and person.bdi < 8


def _scid_current(person: Participant) -> str | None:
    if person.interview == CURRENT:
        return DEPRESSED
    return CONTROL if _is_control(person) else None


def _scid_lifetime(person: Participant) -> str | None:
    if person.interview in (CURRENT, PAST):
        return DEPRESSED
    return CONTROL if _is_control(person) else None


Rule = Callable[[Participant], str | None]

RULES: dict[str, Rule] = {
    "bdi13": _bdi_from_13,
    "bdi-above-13": _bdi_above_13,
    "bdi-extremes": _bdi_extremes,
    "scid": _scid_current,
    "scid-lifetime": _scid_lifetime,
}


def find_rule(name: str) -> Rule:
    """Look a rule up by its name.

    Examples
    --------
    >>> find_rule("bdi13")(Participant("507", bdi=13.0, interview=None))
    'depressed'
    """
    if name not in RULES:
        raise InputError(f"labels={name!r} is not known: use one of {', '.join(RULES)}.")
    return RULES[name]


def parse_number(text: str) -> float | None:
    """Read a number; None where the cell says that there is none.

    Examples
    --------
    >>> parse_number("13"), parse_number("NaN"), parse_number("n/a")
    (13.0, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number == number else None


def parse_interview(text: str) -> int | None:
    """Read the outcome of the interview as either release writes it.

    Examples
    --------
    >>> parse_interview("50"), parse_interview("Past MDD"), parse_interview("")
    (50, 2, None)
    """
    number = parse_number(text)
    if number is not None:
        return int(number) if number in _OUTCOMES.values() else None
    return _OUTCOMES.get(text.strip().casefold())
