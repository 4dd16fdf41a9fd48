"""Options of ``idfsmec features`` about the signal: what is taken out, and which channels."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from idfsmec.cli._completion import one_of
from idfsmec.errors import ArgumentError, InputError


class FeatureSet(StrEnum):
    """Features that are asked for together."""

    paper = "paper"
    log = "log"
    extended = "extended"


class Reference(StrEnum):
    """What signals are measured against."""

    keep = "keep"
    average = "average"


MainsOption = Annotated[
    str,
    typer.Option(
        metavar="auto|50|60|off",
        help="Mains to take out before the band-pass: what the spectrum shows, a frequency in Hz, "
        "or nothing.",
        autocompletion=one_of(lambda: ["auto", "50", "60", "off"]),
    ),
]
NotchOption = Annotated[
    float | None, typer.Option(help="Another word for --mains with a frequency in Hz.")
]
ChannelsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME,...",
        help="Use these channels only, in any spelling; default: those with a place on the scalp.",
    ),
]
AllChannelsOption = Annotated[
    bool,
    typer.Option("--all-channels", help="Use all EEG channels, also those without a place."),
]
ReferenceOption = Annotated[
    Reference,
    typer.Option(help="As recorded, or against the mean of the channels that are not missing."),
]

FeatureSetOption = Annotated[
    FeatureSet | None,
    typer.Option(
        "--features",
        help="A set of features: the paper's (default); with logarithms of powers and variance; "
        "with Hjorth, Lempel-Ziv, permutation entropy and the aperiodic spectrum as well.",
    ),
]
LimitsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        help="A limit of the detection (pop=80, correlation=0, ...), repeatable; inf or 0 "
        "switches it off.",
        autocompletion=one_of(lambda: list(_limits())),
    ),
]


def _limits() -> dict[str, float]:
    from dataclasses import asdict

    from idfsmec.missing import DetectionLimits

    return asdict(DetectionLimits())


def chosen_features(chosen: FeatureSet | None, named: list[str] | None) -> str | list[str]:
    """A set, or the features that are named one by one."""
    if chosen is not None and named:
        raise ArgumentError("--features beside --feature: give one of them.", argument="features")
    return named or (chosen or FeatureSet.paper).value


def parse_limits(texts: list[str] | None) -> dict[str, float]:
    """Read ``NAME=VALUE``."""
    given = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        try:
            given[name.strip()] = float(value)
        except ValueError:
            raise InputError(f"--limit {text}: write a limit as NAME=VALUE, pop=80.") from None
    return given


def signal_settings(
    mains: str, notch: float | None, channels: str | None, all_channels: bool, reference: Reference
) -> dict[str, Any]:
    """What the options mean as arguments of ``FeatureSettings``."""
    if notch is not None and mains != "auto":
        raise ArgumentError(
            f"--notch {notch:g} beside --mains {mains}: give one of them.", argument="notch"
        )
    if channels is not None and all_channels:
        raise ArgumentError(
            "--channels beside --all-channels: give one of them.", argument="channels"
        )
    named = [name.strip() for name in (channels or "").split(",") if name.strip()]
    if channels is not None and not named:
        raise ArgumentError("--channels names none: write Fp1,F7.", argument="channels")
    return {
        "line_freq": mains if notch is None else notch,
        "channels": named or ("all" if all_channels else "scalp"),
        "reference": reference.value,
    }
