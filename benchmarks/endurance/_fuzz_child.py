"""Opens the recordings that it is given, and says in one line each what came of it."""

from __future__ import annotations

import json
import os
import resource
import sys

import numpy as np

from idfsmec.errors import InputError, UnexpectedRecordingError
from idfsmec.features import extract_table
from idfsmec.recordings import Recording, read_manifest, read_modma128
from idfsmec.table import FeatureTable

MEMORY = 4 << 30
"""Bytes; a file that asks for more than the machine has should not get it."""
MOST_ROWS = 1000


def judge(folder: str, kind: str, load: bool) -> dict[str, object]:
    """Make a table of a recording, or open it only."""
    try:
        one = read_modma128(folder) if kind == "mat" else read_manifest(f"{folder}/study.csv")
        if load:
            return {"verdict": load_only(one[0]), "said": ""}
        said = strange(extract_table(one).table)
        return {"verdict": "strange table" if said else "table", "said": said}
    except InputError as error:
        refusal = str(error)
        verdict = "refused" if folder in refusal and "\n" not in refusal else "unclear refusal"
        return {"verdict": verdict, "said": refusal}
    except UnexpectedRecordingError as error:
        return {"verdict": "unexpected", "said": f"{error} from {error.__cause__!r}"}
    except BaseException as error:
        return {"verdict": "traceback", "said": repr(error)}


def load_only(recording: Recording) -> str:
    """Open a recording, then read its signals as MNE does; what features do about them is more."""
    raw = recording.load()
    try:
        raw.load_data(verbose="error")
    except Exception:
        return "signals refused"
    return "opened"


def strange(table: FeatureTable) -> str:
    """What a table of a recording of ten seconds cannot be."""
    values = table.X.to_numpy()
    if np.isinf(values).any():
        return "infinite values"
    if not 0 < len(values) <= MOST_ROWS:
        return f"{len(values)} rows"
    if list(table.y) != [table.y[0]] * len(values):
        return "other labels"
    return ""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(judge(*json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
