"""Run all timings of the project, or the benchmarks named on the command line.

``python -m benchmarks`` runs those against peers, one after the other; ``python -m benchmarks
--list`` names all. What they print also goes to ``--markdown FILE``, a page for the docs, and
their tables as numbers to ``--json FILE``; both keep what other benchmarks have left there.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
from pathlib import Path

import benchmarks
from benchmarks.record import Section, listening, machine, write_json, write_markdown

#: Timings against peers, run by default; the others measure whole comparisons, quality, memory or
#: survival of kills.
TIMINGS = (
    "selection",
    "fastest",
    "grid",
    "cores",
    "gpu",
    "imputation",
    "features",
    "methods",
    "scaling",
    "startup",
)
FOLDERS = ("speed", "quality", "endurance")
#: In a run of all timings, the sizes for which the slowest peers end within minutes.
SHORTENED: dict[str, tuple] = {"methods": ((500,),), "grid": (((19, 600),),)}


def find_benchmarks() -> dict[str, str]:
    """Modules by name, folder after folder."""
    root = Path(benchmarks.__file__).parent
    return {
        one.name: f"benchmarks.{folder}.{one.name}"
        for folder in FOLDERS
        for one in pkgutil.iter_modules([str(root / folder)])
        if not one.name.startswith("_")
    }


def main() -> None:
    available = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all timings")
    parser.add_argument("--list", action="store_true", help="name all benchmarks and end")
    parser.add_argument("--skip", nargs="*", default=[], metavar="NAME", help="leave these out")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.list:
        for name, module in available.items():
            print(f"{name:16}{module}{', against peers' * (name in TIMINGS)}")
        return
    unknown = sorted({*arguments.names, *arguments.skip} - set(available))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(available)}")
    names = [name for name in arguments.names or TIMINGS if name not in arguments.skip]
    shortened = {} if arguments.names else SHORTENED
    failed = run(names, shortened, arguments.json, arguments.markdown)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def run(
    names: list[str], shortened: dict[str, tuple], json: Path | None, markdown: Path | None
) -> list[str]:
    """Run one after the other and write what is there after each; return those that failed."""
    sections: list[Section] = []
    failed = []
    for name in names:
        print(f"# {name}\n", flush=True)
        began, ran_on = time.perf_counter(), machine()
        with listening() as heard:
            try:
                module = importlib.import_module(find_benchmarks()[name])
                module.main(*shortened.get(name, ()))
            except Exception as error:  # one benchmark must not cost the others their results
                print(f"failed: {type(error).__name__}: {error}")
                failed.append(name)
        seconds = time.perf_counter() - began
        sections.append(Section(name, heard.getvalue(), seconds, ran_on))
        print(f"\n({sections[-1].seconds:.0f} s)\n", flush=True)
        if json:
            write_json(json, sections)
        if markdown:
            write_markdown(markdown, sections)
    return failed


if __name__ == "__main__":
    main()
