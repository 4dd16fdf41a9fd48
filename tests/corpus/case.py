"""What a case of the corpus is, and how a study is put around one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .sound import files_of_format

# Few features and short epochs: the corpus is about files, not about numbers.
QUICK = ("--config", str(Path(__file__).with_name("quick.toml")))
THREE_CHANNELS = ("--config", str(Path(__file__).with_name("three_channels.toml")))

REFUSED = "refused"  # exit 2, nothing written
SKIPPED = "skipped"  # exit 2 as it is; with --on-error skip a table without the subject "bad"
ACCEPTED = "accepted"  # exit 0: looks odd, but nothing is wrong
EMPTY = "empty"  # exit 1 with a table of the others; with --on-error skip 0
CLEAR = "clear"  # exit 0 or 2: what it means is open, that it ends in one clear line is not
EITHER = "either"  # a flipped bit may hit something that matters or not; never a traceback


@dataclass(frozen=True)
class Case:
    """One situation: how to write it, how it must end, and what must be said."""

    name: str
    ending: str
    said: tuple[str, ...]
    build: Callable[[Path], list[str]]

    def __str__(self) -> str:
        return self.name


def study(folder: Path, files: dict[str, bytes], first: str) -> list[str]:
    """Write two sound recordings and a third one of subject "bad"; give the arguments."""
    sound = {
        "s1.edf": files_of_format("edf", seed=1)["recording.edf"],
        "s2.edf": files_of_format("edf", seed=2)["recording.edf"],
    }
    for name, content in (sound | files).items():
        (folder / name).write_bytes(content)
    manifest = folder / "study.csv"
    manifest.write_text(f"path,subject,label\ns1.edf,s1,HC\ns2.edf,s2,MDD\n{first},bad,MDD\n")
    return ["features", str(manifest), *QUICK]
