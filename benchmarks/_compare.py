"""Two revisions timed in turns: ``python -m benchmarks._compare REF``.

Both run the same workloads, one revision after the other, several times; the least processor
seconds of each count, which other programs on the machine disturb least. Fails when a workload
became slower by more than 5 % and more than 0.01 s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._timing import markdown

ROOT = Path(__file__).resolve().parent.parent
TURNS = 5
SLOWER_BY, SECONDS = 0.05, 0.01


def run(source: Path) -> dict[str, float]:
    """Seconds of every workload with the package under ``source``."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source / "src"), str(ROOT)])}
    program = [sys.executable, "-m", "benchmarks._workloads"]
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def compare(reference: str) -> int:
    """Print both revisions side by side; 1 if something became slower, else 0."""
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "reference"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(there), reference], check=True)
        try:
            turns = [(run(there), run(ROOT)) for _ in range(TURNS)]
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)
    rows, slower = [], False
    for name in turns[0][1]:
        if any(name not in before for before, _ in turns):
            continue
        before, now = (min(turn[side][name] for turn in turns) for side in (0, 1))
        bad = now > (1 + SLOWER_BY) * before and now > before + SECONDS
        slower |= bad
        verdict = "SLOWER" if bad else "fine"
        rows.append([name, f"{before:.3f}", f"{now:.3f}", f"{now / before:.2f}", verdict])
    print(markdown(["workload", f"{reference}, s", "working tree, s", "ratio", ""], rows))
    return int(slower)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks._compare REF")
    sys.exit(compare(sys.argv[1]))
