"""What benchmarks print, kept as a page and as numbers for comparison."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# What a benchmark draws, as seen from the page.
_FIGURES = {
    "scaling": [
        (
            "Seconds of one fit against channels, samples, features and classes",
            "scaling.svg",
        )
    ]
}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "mne", "torch")


@dataclass(frozen=True)
class Section:
    """All that one benchmark printed, how long it took, and where it ran, as it was before."""

    name: str
    text: str
    seconds: float
    ran_on: dict[str, str] = field(default_factory=lambda: machine())


class _Tee(io.StringIO):
    """Keep what is written and show it too."""

    def __init__(self, shown: io.TextIOBase) -> None:
        super().__init__()
        self.shown = shown

    def write(self, text: str) -> int:
        self.shown.write(text)
        return super().write(text)

    def flush(self) -> None:
        self.shown.flush()


@contextlib.contextmanager
def listening() -> Iterator[io.StringIO]:
    """Collect what is printed inside the block."""
    os.environ.setdefault("COLUMNS", "160")  # for tables drawn by rich
    tee = _Tee(sys.stdout)  # type: ignore[arg-type]
    with contextlib.redirect_stdout(tee):
        yield tee


def machine() -> dict[str, str]:
    """What the numbers depend on; nothing that names the host or its user."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cores": _cores(),
        "load before": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "system": platform.system(),
        **versions,
    }


def _cores() -> str:
    """How many this process may use, and of how many where it may not use all (``taskset``)."""
    there = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    return str(usable) if usable == there else f"{usable} of {there}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def tables(text: str) -> list[dict]:
    """Find the Markdown tables in a text; cells that are numbers become numbers.

    Returns
    -------
    list of dict
        ``title`` (the heading before the table) and ``rows`` (one dict for each).
    """
    found: list[dict] = []
    title, headings = "", None
    lines = _without_boxes(text).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        cells = _cells(line)
        if line.startswith("#"):
            title = line.lstrip("# ")
        if not cells:
            headings = None
        elif headings is None and set("".join(_cells(following))) <= set("-:") != set():
            headings = cells
            found.append({"title": title, "rows": []})
        elif headings is not None and not set("".join(cells)) <= set("-:"):
            found[-1]["rows"].append(dict(zip(headings, map(_value, cells), strict=False)))
    return found


def _cells(line: str) -> list[str]:
    line = line.strip()
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def _value(cell: str) -> float | str:
    number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell)
    return float(cell) if number else cell


def write_json(path: Path, sections: list[Section]) -> None:
    """All tables of all benchmarks, each with its machine; those of others stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(path.read_text("utf-8"))["benchmarks"] if path.exists() else {}
    new = {
        one.name: {
            "machine": one.ran_on,
            "seconds": round(one.seconds, 1),
            "tables": tables(one.text),
        }
        for one in sections
    }
    content = {"benchmarks": in_order({**kept, **new})}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_markdown(path: Path, sections: list[Section]) -> None:
    """A page with everything that was printed; sections of other benchmarks stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = page_sections(path.read_text("utf-8")) if path.exists() else {}
    parts = {**kept, **{one.name: _section(one) for one in sections}}
    path.write_text("\n".join([_HEAD, *in_order(parts).values()]), encoding="utf-8")


_HEAD = (
    "# Benchmarks, as run\n\n<!-- Written by `make bench`; do not edit. -->\n\n"
    "`make bench` writes this page, `make bench BENCH=grid` one section of it. Each section "
    "states its date and machine.\nRatios within a section are of one run.\n"
)


def page_sections(page: str) -> dict[str, str]:
    """Sections of a page by the benchmark's name."""
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0].removeprefix("## "): part.rstrip("\n") + "\n" for part in parts}


def in_order(parts: dict[str, Any]) -> dict[str, Any]:
    """Parts in the order of all timings, others after these."""
    from benchmarks.__main__ import TIMINGS

    names = [*(name for name in TIMINGS if name in parts), *(parts.keys() - set(TIMINGS))]
    return {name: parts[name] for name in names}


def _section(one: Section) -> str:
    about = "; ".join(f"{name} {value}" for name, value in one.ran_on.items() if name != "date")
    took = f"{one.seconds:.0f} s on {one.ran_on['date']}"
    lines = [
        f"## {one.name}\n",
        f"`python -m benchmarks {one.name}`, {took} ({about}).\n",
        *(f"![{shown}]({place})\n" for shown, place in _FIGURES.get(one.name, [])),
        _as_markdown(_without_boxes(one.text)),
    ]
    return "\n".join(lines)


def _as_markdown(text: str) -> str:
    """Move headings one level down."""
    lines = (("#" + line if line.startswith("#") else line) for line in text.split("\n"))
    return "\n".join(lines).strip() + "\n"


def _without_boxes(text: str) -> str:
    """Turn tables drawn by rich into Markdown."""
    result = []
    for line in text.splitlines():
        if line[:1] == "\u2503":  # headings stand between heavy lines
            cells = [cell.strip() for cell in line.strip("\u2503 ").split("\u2503")]
            result += ["", _row(cells), _row(["---"] * len(cells))]
        elif line[:1] == "\u2502":
            result.append(_row([cell.strip() for cell in line.strip("\u2502 ").split("\u2502")]))
        elif line[:1] == "\u2514":  # the lower edge
            result.append("")
        elif not "\u2500" <= line[:1] <= "\u257f":
            result.append(line.rstrip())
    return "\n".join(result)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
