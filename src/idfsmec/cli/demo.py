"""``idfsmec demo``: see the point without any data."""

from __future__ import annotations

from idfsmec.cli._app import command, console


@command("demo")
def demo() -> None:
    """Rank the features of a small generated table with missing channels.

    Example: [bold]idfsmec demo[/bold]
    """
    console.print("not yet")
