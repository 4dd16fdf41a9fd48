"""The Typer application, and how errors become exit codes (0 fine, 1 failed, 2 bad input)."""

from __future__ import annotations

import errno
import functools
import inspect
import re
import sys
import traceback
import typing
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

import idfsmec
from idfsmec.cli._console import print_error, print_plainly, print_without_memory
from idfsmec.cli.signals import spare_address_space, stopping_on_signals
from idfsmec.errors import InputError

#: What Typer raises for bad usage; where it lives differs between versions of Typer.
UsageError: Any = typer.BadParameter.__bases__[0]

#: Arguments whose options have another name; all others are spelt alike.
_OPTIONS = {
    "overwrite": "--force",
    "n_jobs": "--jobs",
    "n_features_to_select": "--k",
    "allow": "--allow-duplicates",
    "absent_ok": "--on-error skip",
}

#: How scikit-learn says that a parameter is wrong.
_PARAMETER = re.compile(
    r"The '(\w+)' parameter of \w+ must be (.+?) Got (.+) instead\.", re.DOTALL
)

#: How the system's loader, threads and Arrow say that there is no memory left.
_WITHOUT_MEMORY = ("failed to map segment", "Cannot allocate memory", "can't start new thread")

Function = TypeVar("Function", bound=Callable[..., Any])


class OneLineGroup(TyperGroup):
    """Commands whose bad usage ends in one line, like all other bad input."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which one needs them."""
        order = idfsmec.cli.__all__
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run; say what is wrong with the options in one line, with exit code 2."""
        given = (args, prog_name, complete_var, False, windows_expand_args)
        if not standalone_mode:  # a program that calls us handles errors itself
            return super().main(*given, **extra)
        try:
            sys.exit(super().main(*given, **extra) or 0)
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                raise SystemExit(2) from None  # the help is on the screen already
            said = " ".join(error.format_message().split())
            said += "" if said.endswith((".", "?", "!")) else "."
            path = error.ctx.command_path if error.ctx is not None else "idfsmec"
            print_error(f"{said} See `{path} --help`.")
            raise SystemExit(2) from None
        except typer.Abort:
            print_error("stopped")
            raise SystemExit(130) from None


app = typer.Typer(
    cls=OneLineGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Rank EEG features and channels that tell depression from health "
    "when electrodes fall off.",
    epilog="Start with [bold]idfsmec demo --quick[/bold]. Tab completes commands, options, "
    "methods and data sets after [bold]idfsmec --install-completion[/bold]. All commands are "
    "functions of idfsmec.cli, too.",
)

_state = {"debug": False}

DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def command(
    name: str, *, has_failed: Callable[[Any], bool] = lambda outcome: False
) -> Callable[[Function], Function]:
    """Register a function as a command, and leave the function itself as it is.

    As a command its errors end in one clear line, its outcome is not shown, and where
    ``has_failed`` says so of the outcome, the exit code is 1. From Python it raises and returns.
    """

    def register(function: Function) -> Function:
        @functools.wraps(function)
        def run(*args: Any, debug: bool = False, **kwargs: Any) -> None:
            _state["debug"] = _state["debug"] or debug
            try:
                spare_address_space()
                with stopping_on_signals(print_plainly):
                    outcome = function(*args, **kwargs)
            except (typer.Exit, typer.Abort, UsageError):
                raise
            except KeyboardInterrupt as error:
                print_error(str(error) or "stopped")
                raise typer.Exit(128 + getattr(error, "number", 2)) from None
            except (InputError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
                _say(error)
                raise typer.Exit(2) from None
            except Exception as error:
                _say_failure(error)
                raise typer.Exit(1) from None
            if has_failed(outcome):
                raise typer.Exit(1)

        app.command(name, help=_help(function.__doc__ or ""))(_with_debug(run))
        return function

    return register


def _with_debug(run: Callable[..., None]) -> Callable[..., None]:
    """Let ``--debug`` stand behind the command's name as well as before it.

    The type of what is returned is not looked at: it may be one that only a type checker imports.
    """
    function = inspect.unwrap(run)
    own = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    kinds = typing.get_type_hints(
        SimpleNamespace(__annotations__=own), function.__globals__, include_extras=True
    )
    debug = inspect.Parameter(
        "debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DebugOption
    )
    parameters = [
        parameter.replace(annotation=kinds[name])
        for name, parameter in inspect.signature(function).parameters.items()
    ]
    run.__signature__ = inspect.Signature([*parameters, debug])  # type: ignore[attr-defined]
    run.__annotations__ = {**kinds, "debug": DebugOption}
    return run


def _help(text: str) -> str:
    r"""A docstring for the terminal: what follows ``::`` stands out instead of being indented.

    Examples
    --------
    >>> _help("Do it.\n\n    For example::\n\n        idfsmec demo\n    ")
    'Do it.\n\nFor example:\n\n[bold]idfsmec demo[/bold]'
    """
    cleaned = inspect.cleandoc(text).replace("::\n", ":\n")
    return re.sub(r"^    (.+)$", r"[bold]\1[/bold]", cleaned, flags=re.MULTILINE)


def _say(error: Exception) -> None:
    if _state["debug"]:
        traceback.print_exception(error)
    print_error(" ".join(_words(error).split()) or type(error).__name__)


def _say_failure(error: Exception) -> None:
    if isinstance(error, MemoryError) or any(said in str(error) for said in _WITHOUT_MEMORY):
        error.__traceback__ = None  # it holds on to what filled the memory
        print_without_memory()
    elif _lacks_files(error):
        print_error("too many open files; give fewer --jobs, or allow more (ulimit -n)")
    else:
        _say(error)


def _lacks_files(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, is that no file can be opened any more."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        error = error.__cause__ or error.__context__
    return False


def _words(error: Exception) -> str:
    """What an error says; the system's errors say their number first, which helps nobody."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return _in_options(error)


def _option(argument: str) -> str:
    return _OPTIONS.get(argument, f"--{argument.replace('_', '-')}")


def _in_options(error: BaseException) -> str:
    """Say what an error says, with the option in place of the argument it names.

    Examples
    --------
    >>> from idfsmec.errors import ArgumentError, ExistingFileError
    >>> _in_options(ExistingFileError("table.csv"))
    'table.csv: exists already; choose another name, or replace it with --force.'
    >>> _in_options(ArgumentError("unit='mm': give one of uV, nV, V.", argument="unit"))
    '--unit mm: give one of uV, nV, V.'
    >>> _in_options(ValueError("The 'lam' parameter of IDFSMEC must be a float. Got -1 instead."))
    '--lam -1: give a float.'
    """
    message = str(error)
    argument = getattr(error, "argument", None)
    if found := _PARAMETER.match(message):
        return f"{_option(found[1])} {found[3]}: give {found[2]}"
    if argument is None:
        return message
    option = _option(argument)

    def spell(found: re.Match[str]) -> str:
        value = found[1].strip("'\"")
        return option if value == "True" else f"{option} {value}"

    return re.sub(rf"\b{argument}=('[^']*'|\"[^\"]*\"|[-+\w./~]*\w)", spell, message)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"idfsmec {idfsmec.__version__}")
        raise typer.Exit


@app.callback()
def main(
    debug: DebugOption = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Options that come before the command's name."""
    _state["debug"] = debug
