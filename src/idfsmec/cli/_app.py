"""The Typer application, and how errors become exit codes (0 fine, 1 failed, 2 bad input)."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console

from idfsmec import __version__
from idfsmec.errors import InputError

console = Console()
error_console = Console(stderr=True)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Rank EEG features and channels that tell depression from health "
    "when electrodes fall off.",
)

_state = {"debug": False}


def command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command whose errors end in one clear line instead of a traceback."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            try:
                function(*args, **kwargs)
            except (typer.Exit, typer.Abort, typer.BadParameter):
                raise
            except (InputError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
                _say(error)
                raise typer.Exit(2) from None
            except Exception as error:
                _say(error)
                raise typer.Exit(1) from None

        app.command(name)(run)
        return function

    return register


def _say(error: Exception) -> None:
    if _state["debug"]:
        traceback.print_exception(error)
    message = " ".join(str(error).split()) or type(error).__name__
    error_console.print("error: " + message, style="red", markup=False, soft_wrap=True)


def _print_version(value: bool) -> None:
    if value:
        console.print(f"idfsmec {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False,
        "--version",
        help="Show the version and exit.",
        callback=_print_version,
        is_eager=True,
    ),
) -> None:
    """Options that come before the command's name."""
    _state["debug"] = debug
