"""Time programs in turns, so that a noisy machine is equally noisy to all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of the repetitions of one program."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """Middle repetition."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """Fastest repetition: what the program needs when nothing disturbs it."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """Range relative to the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


def time_in_turns(
    programs: dict[str, Callable[[], object]], repeats: int = 5, warm_up: bool = True
) -> dict[str, Timing]:
    """Run every program once per turn, for several turns."""
    if warm_up:
        for program in programs.values():
            program()
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(values) for name, values in seconds.items()}


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
