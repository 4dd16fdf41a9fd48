"""Atheris on the text readers: bytes that reach new branches are kept and changed further.

Run ``python fuzz/text_readers.py -max_total_time=60`` (libFuzzer's options; Linux, ``atheris``).
Only :class:`idfsmec.errors.InputError` may come out; anything else is a crash, which libFuzzer
writes to a file ``crash-*``. Every crash becomes an ``@example`` in tests/trust/test_fuzz.py.
"""

import contextlib
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["idfsmec", "csv"]):
    from idfsmec.errors import InputError
    from idfsmec.recordings import read_manifest, read_modma3, read_pred_d003
    from idfsmec.table import FeatureTable

PLACE = Path(tempfile.mkdtemp(prefix="idfsmec-fuzz-"))
READERS = (
    (read_manifest, "study.csv"),
    (lambda path: read_pred_d003(path.parent), "participants.tsv"),
    (lambda path: read_modma3(path.parent)[0].load(), "02010002_still.txt"),
    (FeatureTable.read, "table.csv"),
)
SEEDS = (
    b"\x00path,subject,label\ns1.edf,s1,HC\n",
    b"\x01participant_id\tOriginal_ID\tBDI\tSCID\nsub-001\t507\t3\t99\n",
    b"\x021400000 1400001 1399999\n",
    b"\x03subject,label,Fp1__a\ns1,HC,1.5\ns2,MDD,\n",
)


def try_one(data: bytes) -> None:
    """Let the first byte choose the reader, and the others be the file."""
    if not data:
        return
    read, name = READERS[data[0] % len(READERS)]
    path = PLACE / name
    path.write_bytes(data[1:])
    with contextlib.suppress(InputError):
        read(path)


def main() -> None:
    """Start libFuzzer with a sound file of each kind."""
    warnings.simplefilter("ignore")
    (PLACE / "s1.edf").touch()
    corpus = PLACE / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(SEEDS):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup([*sys.argv, str(corpus), f"-artifact_prefix={PLACE}/"], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
