"""Build wheel and sdist, and try both as somebody who has nothing but them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, where: Path = ROOT) -> None:
    """Run a command, and say which."""
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=where, check=True)


def environment(folder: Path) -> Path:
    """Make an empty environment; returns its Python."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def main() -> None:
    """Build in a temporary folder; the first thing that does not work ends it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run(sys.executable, "-m", "build", "--outdir", folder / "dist")
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")

        for kind, built in (("wheel", wheel), ("sdist", sdist)):
            python = environment(folder / kind)
            run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", built)
            run(python, "-m", "idfsmec", "--version", where=folder)
            demo = ("demo", "--quick", "--out", folder / f"demo-{kind}")
            run(python, "-m", "idfsmec", *demo, where=folder)

        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "source", filter="data")
        (source,) = (folder / "source").iterdir()
        tracked = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        ).stdout.splitlines()
        lost = [name for name in tracked if not (source / name).exists()]
        if lost:
            sys.exit(f"the sdist lacks {', '.join(lost[:10])}: make test would fail in it")
        run(sys.executable, "-m", "pytest", "-q", "--collect-only", where=source)


if __name__ == "__main__":
    main()
