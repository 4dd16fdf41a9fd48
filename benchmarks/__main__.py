"""Run all benchmarks of the project, or those named on the command line."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main() -> None:
    available = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[0] != "_"]
    wanted = sys.argv[1:] or available
    unknown = sorted(set(wanted) - set(available))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(available)}")
    for name in wanted:
        print(f"# {name}\n", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
        print(flush=True)


if __name__ == "__main__":
    main()
