"""The Typer application: commands, their options, and how they end.

Exit codes are 0 fine, 1 the work failed, 2 bad usage or input, 128 + number of a signal.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import signal
import sys
import threading
import traceback
import typing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

import idfsmec
from idfsmec.cli import options
from idfsmec.cli.console import (
    flush_output,
    logged,
    print_error,
    print_plainly,
    state,
    warnings_as_lines,
)
from idfsmec.errors import InputError

#: What Typer raises for bad usage; where it lives differs between versions of Typer.
UsageError: Any = typer.BadParameter.__bases__[0]
#: Options of all commands, which may stand anywhere.
GLOBAL = {
    "--debug": "debug",
    **dict.fromkeys(("--quiet", "-q"), "quiet"),
    **dict.fromkeys(("--verbose", "-v"), "verbose"),
}
#: Arguments whose options have another name; all others are spelt alike.
_OPTIONS = {
    "overwrite": "--force",
    "n_jobs": "--jobs",
    "n_splits": "--folds",
    "n_repeats": "--repeats",
    "n_facts": "--facts",
    "n_comparisons": "--comparisons",
    "n_features": "--features",
    "n_selected": "--k",
    "absent_ok": "--on-error skip",
}
#: Errors that are due to what the user gave.
_BAD_INPUT = (InputError, FileNotFoundError, IsADirectoryError, PermissionError)
#: How the system's loader, threads and Arrow say that there is no memory left.
_WITHOUT_MEMORY = ("failed to map segment", "Cannot allocate memory", "can't start new thread")
#: Seconds after which a process that was asked to end, and has not begun to, is ended.
_PATIENCE = 5.0

Function = TypeVar("Function", bound=Callable[..., Any])


class CommandGroup(TyperGroup):
    """Group of commands whose errors end in one line and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List commands in the order in which they are needed."""
        return [name for name in idfsmec.cli.__all__ if name in self.commands]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the global options from any position."""
        end = args.index("--") if "--" in args else len(args)
        flags = {GLOBAL[word] for word in args[:end] if word in GLOBAL}
        vars(state).update((name, name in flags) for name in GLOBAL.values())
        rest = [word for word in args[:end] if word not in GLOBAL]
        return super().parse_args(ctx, [*rest, *args[end:]])

    def invoke(self, ctx: Any) -> int:
        """Run a command and return its exit code; print an error in one line."""
        try:
            spare_address_space()
            open_streams()
            with logged(), stopping_on_signals():
                outcome = super().invoke(ctx)
        except (typer.Exit, typer.Abort, UsageError):
            raise
        except KeyboardInterrupt as error:
            print_error(str(error) or "stopped")
            return 128 + getattr(error, "number", 2)
        except Exception as error:
            _print_exception(error)
            return 2 if isinstance(error, _BAD_INPUT) else 1
        # Tasks of a benchmark failed, or recordings have no row in a table.
        n_failed = len(getattr(outcome, "failures", ()))
        return int(n_failed > 0 or getattr(outcome, "incomplete", False))

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run; print bad usage in one line, with exit code 2."""
        try:
            code = super().main(*args, **extra | {"standalone_mode": False})
            return sys.exit(code or 0) if standalone_mode else code
        except UsageError as error:
            if not standalone_mode:  # a program that calls us handles errors itself
                raise
            if type(error).__name__ != "NoArgsIsHelpError":  # the help is on the screen already
                text = " ".join(error.format_message().split())
                text += "" if text.endswith((".", "?", "!")) else "."
                path = error.ctx.command_path if error.ctx is not None else "idfsmec"
                print_error(f"{text} See `{path} --help`.")
            raise SystemExit(2) from None
        except typer.Abort:
            print_error("stopped")
            raise SystemExit(130) from None
        except OSError as error:  # the help goes into a full disk
            _print_exception(error)
            raise SystemExit(1) from None
        finally:
            vars(state).update(dict.fromkeys(GLOBAL.values(), False))
            flush_output()


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Select EEG features and channels that separate groups, with missing channels.",
    epilog="Start with [bold]idfsmec demo --quick[/bold]. After [bold]idfsmec "
    "--install-completion[/bold] the Tab key completes commands, options, methods and data "
    "sets. Each command is also a function of idfsmec.cli.",
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"idfsmec {idfsmec.__version__}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", help="Show the version.", callback=_print_version, is_eager=True
)


@app.callback()
def main(
    debug: Annotated[bool, typer.Option("--debug", help="Show an error's traceback.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log versions and tasks with times.")
    ] = False,
    version: Annotated[bool, _VERSION] = False,
) -> None:
    """Describe the global options, which the group has taken already."""


def command(**described: Any) -> Callable[[Function], Function]:
    """Register a function as the command of its name; its warnings become lines, also from Python.

    ``described`` has the help of parameters, or all that Typer wants to know of them; that of
    parameters which several commands have is in :data:`idfsmec.cli.options.SHARED`.
    """

    def register(function: Function) -> Function:
        function = warnings_as_lines()(function)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        # The type of what is returned is not looked at: only a type checker imports it.
        kinds = {key: kind for key, kind in function.__annotations__.items() if key != "return"}
        names = inspect.unwrap(function).__globals__
        hints = typing.get_type_hints(SimpleNamespace(__annotations__=kinds), names)
        parameters = []
        for key, parameter in inspect.signature(function).parameters.items():
            declared = described.get(key, "")
            declared = options.option(key, declared) if isinstance(declared, str) else declared
            parameters.append(parameter.replace(annotation=Annotated[hints[key], declared]))
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        # On the terminal examples are bold instead of indented.
        text = inspect.cleandoc(function.__doc__ or "").replace("::\n", ":\n")
        text = re.sub(r"^    (.+)$", r"[bold]\1[/bold]", text, flags=re.MULTILINE)
        app.command(function.__name__, help=text)(run)
        return function

    return register


def _print_exception(error: Exception) -> None:
    if not isinstance(error, _BAD_INPUT):
        if isinstance(error, MemoryError) or any(text in str(error) for text in _WITHOUT_MEMORY):
            error.__traceback__ = None  # it holds on to what filled the memory
            print_plainly("out of memory; give fewer --jobs, a smaller table or more memory")
            return
        if _lacks_files(error):
            print_error("too many open files; give fewer --jobs, or allow more (ulimit -n)")
            return
    if state.debug:
        traceback.print_exception(error)
    text = in_options(error)
    if isinstance(error, OSError) and error.strerror:  # the number of the error helps no user
        text = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    print_error(" ".join(text.split()) or type(error).__name__)


def _lacks_files(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is that no more files can be opened."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        error = error.__cause__ or error.__context__
    return False


def in_options(error: BaseException) -> str:
    """Return the message of an error, with options in place of argument names.

    >>> from idfsmec.errors import ArgumentError, ExistingFileError
    >>> in_options(ExistingFileError("table.csv"))
    'table.csv: exists already; choose another name, or replace it with --force.'
    >>> in_options(ArgumentError("imputer='no': give one of mean, factors.", argument="imputer"))
    '--imputer no: give one of mean, factors.'
    """
    argument = getattr(error, "argument", None)
    if not argument:
        return str(error)
    option = _OPTIONS.get(argument, f"--{argument.replace('_', '-')}")

    def spell(match: re.Match[str]) -> str:
        value = match[1].strip("'\"")
        return option if value == "True" else f"{option} {value}"

    return re.sub(rf"\b{argument}=('[^']*'|\"[^\"]*\"|[-+\w./~]*\w)", spell, str(error))


class Stopped(KeyboardInterrupt):
    """The process was asked to end by a signal; its exit code is the signal's number and 128."""

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        super().__init__("stopped" if name == "SIGINT" else f"stopped by {name}")
        self.number = number


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Turn the first of SIGINT, SIGTERM and SIGHUP into :class:`Stopped`, and ignore others.

    So that cleaning up is not disturbed by Ctrl-C. A signal that is ignored from outside
    (``nohup``) stays ignored. A process inside a library that does not hear signals is ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = threading.Event()
    names = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not on Windows
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    taken = [number for number in numbers if signal.getsignal(number) in defaults]

    def stop(number: int, frame: Any) -> None:
        heard.set()
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    with ExitStack() as stack:
        for number in taken:
            stack.callback(signal.signal, number, signal.signal(number, stop))
        if os.name == "posix":
            stack.enter_context(_ending_if_unheard(taken, heard))
        yield


@contextmanager
def _ending_if_unheard(numbers: list[int], heard: threading.Event) -> Iterator[None]:
    """End this process if Python does not handle a signal: a separate thread waits for it.

    The system writes a signal's number into a pipe at once; Python's handler comes later.
    """
    outlet, inlet = os.pipe()
    os.set_blocking(inlet, False)

    def listen() -> None:
        while number := int.from_bytes(os.read(outlet, 1), "big"):
            if number in numbers and not heard.wait(_PATIENCE):
                print_plainly(str(Stopped(number)))
                os._exit(128 + number)
        os.close(outlet)

    before = signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(inlet)
        listener.join(0 if heard.is_set() else None)


def open_streams() -> None:
    """Open the null device for closed standard streams: pipes would get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:  # libraries flush them
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def spare_address_space() -> None:
    """Let libraries start no threads where address space is short (``ulimit -v``).

    OpenBLAS sends itself SIGINT when it cannot start its threads. Comes before numpy is imported.
    """
    try:
        import resource  # not on Windows
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= 4 << 30:
        return
    if limit < 1 << 30:
        raise InputError(f"{limit >> 20} MiB of memory (ulimit -v) are too few: give 1024 or more")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
