"""How soon the command line answers: processor time of what a user waits for before any work.

``python -m benchmarks startup`` runs each command several times, in turns, and prints the least
processor seconds of it and how many times those of ``python -c pass``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks._timing import markdown

SOURCE_TREE = Path(__file__).parents[2] / "src"
TURNS = 7
EMPTY = "python -c pass"
# What the installed command runs.
COMMAND = ["-c", "from idfsmec.cli import app; app(prog_name='idfsmec')"]
# What is typed, and up to where Tab is pressed.
CALLS = ("--version", "--help", "select --help", "benchmark --help")
TABS = ("be", "benchmark t.csv --me", "benchmark t.csv --methods m", "features m.csv --features s")


def main() -> None:
    """Print processor seconds and ratios."""
    programs: dict[str, tuple[list[str], dict[str, str]]] = {
        EMPTY: (["-c", "pass"], {}),
        "import idfsmec": (["-c", "import idfsmec"], {}),
    }
    for words in CALLS:
        programs[f"idfsmec {words}"] = ([*COMMAND, *words.split()], {})
    for words in TABS:
        programs[f"idfsmec {words}<Tab>"] = (COMMAND, _tab(words))
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(TURNS):
        for name, (arguments, environment) in programs.items():
            seconds[name].append(processor_seconds(arguments, environment))
    empty = min(seconds[EMPTY])
    rows = [
        [f"`{name}`", f"{min(found):.3f}", f"{min(found) / empty:.1f}"]
        for name, found in seconds.items()
    ]
    print(markdown(["command", "processor s", "times an empty program"], rows))


def processor_seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Run Python once; what it took of the processor, for itself and for the system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE_TREE), **environment},
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _tab(words: str) -> dict[str, str]:
    """What bash says when Tab is pressed after these words."""
    return {
        "_IDFSMEC_COMPLETE": "complete_bash",
        "COMP_WORDS": f"idfsmec {words}",
        "COMP_CWORD": str(len(words.split())),
    }


if __name__ == "__main__":
    main()
