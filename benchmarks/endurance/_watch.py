"""Run a program and look at it from outside: memory and open files of its whole process tree."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SOURCE_TREE = Path(__file__).parents[2] / "src"
INTERVAL = 0.1


@dataclass
class Watched:
    """What was seen, one entry per look."""

    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    """Resident memory (MiB), summed over the tree; pages that processes share count twice."""
    handles: list[int] = field(default_factory=list)
    """Open files, pipes and sockets, summed over the tree."""
    duration: float = 0.0
    """Seconds from start to end."""
    highest: float = 0.0
    """Peak resident memory (MiB) of the first process, where Linux keeps it: between looks too."""

    @property
    def peak(self) -> float:
        """Peak of the tree (MiB)."""
        return max(*self.megabytes, self.highest)


def source_environment() -> dict[str, str]:
    """The environment in which a command runs the code of this tree."""
    return os.environ | {"PYTHONPATH": str(SOURCE_TREE)}


def watch_command(*arguments: str) -> Watched:
    """Run ``idfsmec ARGUMENTS`` of this tree and look at it ten times a second."""
    command = [sys.executable, "-m", "idfsmec", *arguments]
    seen = Watched()
    start = time.perf_counter()
    process = subprocess.Popen(command, env=source_environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        _look(process.pid, seen, time.perf_counter() - start)
        time.sleep(INTERVAL)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    seen.duration = time.perf_counter() - start
    return seen


def _look(pid: int, seen: Watched, seconds: float) -> None:
    try:
        family = _family(pid)
        memory = [member.memory_info().rss for member in family]
        handles = [member.num_fds() for member in family]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return  # a member ended while it was looked at; the next look is soon
    if not all(memory):
        return  # ended, and not yet waited for
    seen.highest = max(seen.highest, _high_water(pid))
    seen.seconds.append(seconds)
    seen.megabytes.append(sum(memory) / 2**20)
    seen.handles.append(sum(handles))


def _high_water(pid: int) -> float:
    # Not getrusage: what it says of a child begins with the memory of the parent that forked it.
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 2**10 for line in lines if line[:6] == "VmHWM:"), default=0)


def _family(pid: int) -> Sequence[psutil.Process]:
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]
