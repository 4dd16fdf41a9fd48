"""Write the lists of options in reference/commands.md from the commands themselves.

``python docs/write_commands.py`` renews the page; tests/docs/test_commands.py fails while it is stale.
"""

import inspect
import re
import sys
from pathlib import Path

import typer

from idfsmec import cli

PAGE = Path(__file__).parent / "reference" / "commands.md"
MARK = "<!-- Written by docs/write_commands.py from here on; do not edit. -->\n"


def show_default(parameter, required):
    """Return a default as one would type it; nothing for none and for a flag."""
    if required:
        return " (required)"
    value = parameter.default
    return "" if value in (None, "", False) else f" (`{value}`)"


def section(name, command):
    """Return the section of a command: purpose, examples, arguments and options."""
    doc = inspect.cleandoc(getattr(cli, name).__doc__)
    purpose = " ".join(doc.split("\n\n")[0].split())
    examples = re.findall(r"^    (.+)$", doc, flags=re.MULTILINE)
    parameters = inspect.signature(getattr(cli, name)).parameters
    lines = [f"## {name}", "", purpose, "", "```console", *examples, "```", ""]
    for param in command.params:
        names = ", ".join(f"`{text}`" for text in param.opts)
        if not param.opts[0].startswith("-"):
            names = f"`{param.metavar or param.name.upper()}`"
        default = show_default(parameters[param.name], param.required)
        lines.append(f"- **{names}**{default}: {' '.join(param.help.split())}")
    return "\n".join(lines)


def render():
    """Return the sections of all commands, in the order of ``idfsmec --help``."""
    commands = typer.main.get_command(cli.app).commands
    names = [name for name in cli.__all__ if name in commands]
    return "\n\n".join(section(name, commands[name]) for name in names) + "\n"


def renewed(text):
    """Return the page's text with its sections written anew."""
    head, mark, _ = text.partition(MARK)
    if not mark:
        sys.exit(f"{PAGE}: lacks the line {MARK.strip()!r}")
    return f"{head}{MARK}\n{render()}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
