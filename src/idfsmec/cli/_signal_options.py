"""Options of ``idfsmec features`` about the signal: what is taken out, and which channels."""

from __future__ import annotations

from typing import Annotated

import typer

from idfsmec.cli._completion import one_of

MainsOption = Annotated[
    str,
    typer.Option(
        metavar="auto|50|60|off",
        help="Mains to take out before the band-pass: what the spectrum shows, a frequency in Hz, "
        "or nothing.",
        autocompletion=one_of(lambda: ["auto", "50", "60", "off"]),
    ),
]
