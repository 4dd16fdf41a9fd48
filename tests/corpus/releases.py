"""Copies of MODMA, PRED+CT d003 and BIDS trees that are not as they were released."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from .case import ACCEPTED, EITHER, EMPTY, QUICK, REFUSED, SKIPPED, THREE_CHANNELS, Case
from .sound import book_bytes, eeglab_struct, files_of_format, flip_bits, make_raw, mat_bytes

MODMA3 = "EEG_3channels_resting_lanzhou_2015"
MODMA128 = "EEG_128channels_resting_lanzhou_2015"
BAD = "02010011_still.txt"


@cache
def _counts(seed):
    return np.rint(make_raw(seed=seed).get_data().T * 1e9 + 1.5e6).astype(int)


def _text(counts):
    return "".join(" ".join(map(str, row)) + "\n" for row in counts).encode()


def _modma3(content, folder, table=None, name=BAD):
    place = folder / MODMA3
    place.mkdir()
    for seed, number in enumerate(("02010002", "02020008")):
        (place / f"{number}_still.txt").write_bytes(SOUND_TEXTS[seed])
    if content is not None:
        (place / name).write_bytes(content)
    if table is not None:
        (place / f"subjects_information_{MODMA3}.xlsx").write_bytes(table)
    return ["features", "modma3", "--data", str(folder), *QUICK]


SOUND_TEXTS = [_text(_counts(seed)) for seed in range(3)]
SOUND = SOUND_TEXTS[2]


def _line(number, text):
    """A sound text in which one line was replaced."""
    lines = SOUND.splitlines(keepends=True)
    lines[number - 1] = text
    return b"".join(lines)


def _bad_text(name, content, *said):
    return Case(f"modma3: {name}", SKIPPED, (BAD, *said), partial(_modma3, content))


def _bad_table(name, rows, *said, ending=REFUSED):
    content = rows if isinstance(rows, bytes) else book_bytes(rows)
    words = ("subjects_information", *said) if ending == REFUSED else ("from 2 participants",)
    return Case(f"modma3 table: {name}", ending, words, partial(_modma3, None, table=content))


HEAD = ["subject id", "type", "age"]
GOOD = [HEAD, ["02010002", "MDD", 30], ["02020008", "HC", 31]]


def _matrix(variables, folder, damage=lambda content: content):
    place = folder / MODMA128
    place.mkdir()
    for seed, name in enumerate(("02010002rest.mat", "02020008rest.mat")):
        (place / name).write_bytes(mat_bytes({"a": _signals(seed), "samplingRate": 250.0}))
    (place / "02010008_bad.mat").write_bytes(damage(mat_bytes(variables)))
    # Three channels of 128: the corpus is about files.
    return ["features", "modma128", "--data", str(folder), *THREE_CHANNELS]


def _signals(seed=2, rows=129, dtype=np.float32):
    signals = np.random.default_rng(seed).normal(scale=20, size=(rows, 1100)).astype(dtype)
    signals[-1] = 0
    return signals


def _bad_matrix(name, variables, *said, ending=SKIPPED, damage=lambda content: content):
    build = partial(_matrix, variables, damage=damage)
    return Case(f"modma128: {name}", ending, ("02010008_bad.mat", *said), build)


def _hdf5(content):
    """What MATLAB 7.3 writes: a text of 512 bytes in front of an HDF5 file."""
    head = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    return head.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n" + bytes(200)


def _pred(folder, change=None, sheet=None, struct=None):
    eeg = eeglab_struct(make_raw(), make_raw().get_data() * 1e6) if struct is None else struct
    rows = [["id", "MDD", "BDI"], [507, 99, 0], [510, 1, 20]]
    (folder / "507_Depression_REST.mat").write_bytes(
        mat_bytes({"EEG": eeglab_struct(make_raw(seed=4), make_raw(seed=4).get_data() * 1e6)})
    )
    (folder / "510_Depression_REST.mat").write_bytes(mat_bytes({change or "EEG": eeg}))
    content = book_bytes(rows, "Depression Rest") if sheet is None else sheet
    if content:
        (folder / "Data_4_Import_REST.xlsx").write_bytes(content)
    return ["features", "pred-d003", "--data", str(folder), *QUICK]


def _pred_case(name, said, **options):
    return Case(f"pred-d003: {name}", REFUSED, said, partial(_pred, **options))


def _tsv(participants, folder, dataset=("features",)):
    """A BIDS tree with one recording per subject."""
    if participants is not None:
        (folder / "participants.tsv").write_bytes(participants)
    for seed, subject in enumerate(("01", "02")):
        place = folder / f"sub-{subject}" / "eeg"
        place.mkdir(parents=True)
        content = files_of_format("edf", seed=seed)["recording.edf"]
        (place / f"sub-{subject}_task-rest_eeg.edf").write_bytes(content)
    if dataset == ("features",):
        return ["features", str(folder), *QUICK]
    return ["features", "pred-d003", "--data", str(folder), *QUICK]


def _bids(name, participants, *said, **options):
    words = ("participants.tsv", *said)
    return Case(f"bids: {name}", REFUSED, words, partial(_tsv, participants, **options))


def _without_chanlocs():
    return {
        k: v for k, v in eeglab_struct(make_raw(), np.zeros((3, 9))).items() if k != "chanlocs"
    }


CASES = [
    _bad_text("two columns", _text(_counts(2)[:, :2]), "2 columns"),
    _bad_text("four columns", _text(np.c_[_counts(2), _counts(2)[:, :1]]), "4 columns"),
    _bad_text("letters", _line(7, b"15000 fifteen 15000\n"), "fifteen"),
    _bad_text("a header", b"Fp1 Fpz Fp2\n" + SOUND, "Fp1"),
    _bad_text("commas", SOUND.replace(b" ", b",")),
    _bad_text("a line with two numbers", _line(9, b"15000 15000\n"), "line 9"),
    _bad_text("a line with four numbers", _line(9, b"1 2 3 4\n"), "line 9"),
    _bad_text("the last line is cut", SOUND[:-12], "line 2250"),
    _bad_text("empty", b""),
    _bad_text("only blanks", b" \n \n"),
    _bad_text("bytes of zero", bytes(4000)),
    _bad_text("random bytes", np.random.default_rng(0).bytes(4000)),
    _bad_text("a quote that never ends", _line(5, b'1 "2 3\n')),
    _bad_text("infinity", _line(5, b"1 inf 3\n"), "line 5"),
    _bad_text("numbers without end", _line(5, b"1 " + b"9" * 400 + b" 3\n")),
    _bad_text("cut in the middle of a line", SOUND[: len(SOUND) // 2 - 12]),
    _bad_text("a matrix by the name of a text", mat_bytes({"a": np.eye(3)})),
    Case(
        "modma3: bits flipped",
        EITHER,
        (BAD,),
        partial(_modma3, flip_bits(SOUND, seed=4)),
    ),
    Case(
        "modma3: CRLF",
        ACCEPTED,
        ("from 3 participants",),
        partial(_modma3, SOUND.replace(b"\n", b"\r\n")),
    ),
    Case(
        "modma3: no last line end",
        ACCEPTED,
        ("from 3 participants",),
        partial(_modma3, SOUND.rstrip()),
    ),
    Case(
        "modma3: a name without a number",
        REFUSED,
        ("hello_still.txt", "eight digits"),
        partial(_modma3, SOUND, name="hello_still.txt"),
    ),
    Case("modma3: no folder", REFUSED, ("modma3", "--data"), lambda f: ["features", "modma3"]),
    Case(
        "modma3: empty folder",
        REFUSED,
        ("_still.txt",),
        lambda folder: ["features", "modma3", "--data", str(folder)],
    ),
    _bad_table("other column names", [["id", "group"], ["02010002", "MDD"]], "'subject id'"),
    _bad_table("unknown type", [HEAD, ["02010002", "ill", 30]], "row 2", "'ill'"),
    _bad_table("an id twice", [*GOOD, ["02010002", "MDD", 33]], "row 4", "02010002"),
    _bad_table("against the number", [HEAD, ["02010002", "HC", 30]][:2] + GOOD[2:3], "02010002"),
    _bad_table("empty sheet", [[]], "'subject id'"),
    _bad_table("empty file", b""),
    _bad_table("not a spreadsheet", b"subject id,type\n02010002,MDD\n"),
    _bad_table("cut in the middle", book_bytes(GOOD)[:2000]),
    _bad_table("bits flipped", flip_bits(book_bytes(GOOD), seed=2, n=200)),
    _bad_table(
        "numbers for text", [HEAD, [2010002, "mdd", 30], [2020008.0, "HC ", 31]], ending=ACCEPTED
    ),
    _bad_matrix("no matrix", {"x": np.arange(4.0)}, "129 rows"),
    _bad_matrix("two matrices", {"a": _signals(), "b": _signals()}, "has 2"),
    _bad_matrix("128 rows", {"a": _signals(rows=128)}, "129 rows"),
    _bad_matrix("turned", {"a": _signals().T}, "129 rows"),
    _bad_matrix("complex numbers", {"a": _signals() * 1j}, "129 rows"),
    _bad_matrix("text", {"a": "nothing"}, "129 rows"),
    _bad_matrix("a rate of zero", {"a": _signals(), "samplingRate": 0.0}, "samplingRate"),
    _bad_matrix("a negative rate", {"a": _signals(), "samplingRate": -250.0}, "samplingRate"),
    _bad_matrix("a rate in words", {"a": _signals(), "samplingRate": "fast"}, "samplingRate"),
    _bad_matrix("an empty rate", {"a": _signals(), "samplingRate": []}, "samplingRate"),
    _bad_matrix("an empty matrix", {"a": _signals()[:, :0]}),
    _bad_matrix("nothing but NaN", {"a": _signals() * np.nan}, "skipped 1", ending=EMPTY),
    _bad_matrix("empty", {}, damage=lambda whole: b""),
    _bad_matrix("cut", {"a": _signals()}, damage=lambda whole: whole[: len(whole) // 2]),
    _bad_matrix("a text by the name of a matrix", {}, damage=lambda whole: SOUND),
    _bad_matrix(
        "a recording by the name of a matrix",
        {},
        damage=lambda whole: files_of_format("edf")["recording.edf"],
    ),
    _bad_matrix(
        "bits flipped anywhere",
        {"a": _signals()},
        ending=EITHER,
        damage=lambda whole: flip_bits(whole, 5),
    ),
    _bad_matrix("version 7.3", {"a": _signals()}, "7.3", damage=_hdf5),
    _bad_matrix(
        "bits flipped in front",
        {"a": _signals()},
        ending=EITHER,
        damage=lambda whole: flip_bits(whole, 3, within=200),
    ),
    _pred_case("no structure", ("510_", "EEG"), change="other"),
    _pred_case("no channel names", ("510_", "chanlocs"), struct=_without_chanlocs()),
    _pred_case(
        "other number of channels",
        ("510_", "channel names"),
        struct=eeglab_struct(make_raw(), np.zeros((2, 2250))),
    ),
    _pred_case("no table", ("Data_4_Import_REST.xlsx",), sheet=b""),
    _pred_case("no such sheet", ("Data_4_Import_REST.xlsx",), sheet=book_bytes([["id"]])),
    _pred_case(
        "a subject without a line",
        ("510", "Data_4_Import_REST.xlsx"),
        sheet=book_bytes([["id", "MDD", "BDI"], [507, 99, 0]], "Depression Rest"),
    ),
    _pred_case(
        "a subject with two lines",
        ("510", "Data_4_Import_REST.xlsx"),
        sheet=book_bytes(
            [["id", "MDD", "BDI"], [507, 99, 0], [510, 1, 20], [510, 99, 1]], "Depression Rest"
        ),
    ),
    _bids("no participants", None),
    _bids("empty participants", b""),
    _bids("commas for tabs", b"participant_id,group\nsub-01,HC\nsub-02,MDD\n"),
    _bids("no label column", b"participant_id\tage\nsub-01\t30\nsub-02\t31\n", "age"),
    _bids("a subject is missing", b"participant_id\tgroup\nsub-01\tHC\n", "sub-02"),
    _bids("a subject twice", b"participant_id\tgroup\nsub-01\tHC\nsub-02\tHC\nsub-01\tMDD\n"),
    _bids("latin-1", "participant_id\tgroup\nsub-01\tgesünd\nsub-02\tHC\n".encode("latin-1")),
    _bids("a quote that never ends", b'participant_id\tgroup\n"sub-01\tHC\nsub-02\tMDD\n'),
    _bids("bytes of zero", b"participant_id\tgroup\nsub-01\tHC\0\nsub-02\tMDD\n"),
    _bids("pred: latin-1", "participant_id\nsub-01\xfc\n".encode("latin-1"), dataset=("pred",)),
    _bids(
        "pred: a short line",
        b"participant_id\tOriginal_ID\tBDI\tSCID\nsub-01\n",
        dataset=("pred",),
    ),
]
