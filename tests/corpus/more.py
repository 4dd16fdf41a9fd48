"""More of what people have: odd tables, manifests, BIDS trees and headers of recordings."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zipfile
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .case import ACCEPTED, CLEAR, EITHER, QUICK, REFUSED, SKIPPED, Case, study
from .manifests import PLAIN
from .recordings import HTML
from .sound import FIRST_FILE, files_of_format
from .tables import _frame, csv_bytes, parquet_bytes

# --- tables -----------------------------------------------------------------------------


def _table(content, name, folder):
    (folder / name).write_bytes(content)
    return ["select", str(folder / name)]


def _bad_table(name, content, *said, file="table.csv", ending=REFUSED):
    words = () if ending == ACCEPTED else (file, *said)
    return Case(f"table: {name}", ending, words, partial(_table, content, file))


def _arrow(**columns):
    """A Parquet file of Arrow's own types."""
    table = pa.Table.from_pandas(_frame())
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, values)
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def _column_twice():
    table = pa.Table.from_pandas(_frame())
    file = io.BytesIO()
    pq.write_table(table.append_column("Cz__a", table["Cz__b"]), file)
    return file.getvalue()


def _zip(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("table.csv", content)
    return file.getvalue()


def _typed(name, values, *said, ending=REFUSED):
    content = _arrow(Cz__a=pa.array(values) if isinstance(values, list) else values)
    return _bad_table(f"parquet of {name}", content, *said, file="table.parquet", ending=ending)


TEXT = csv_bytes().decode()
TABLES = [
    _bad_table("zipped", _zip(csv_bytes()), file="table.csv"),
    _bad_table("zip called gz", _zip(csv_bytes()), file="table.csv.gz"),
    _bad_table("bz2 called csv", bz2.compress(csv_bytes())),
    _bad_table("packed twice", gzip.compress(gzip.compress(csv_bytes())), file="table.csv.gz"),
    _bad_table("a parquet column twice", _column_twice(), "Cz__a", file="table.parquet"),
    _typed("words", ["high"] * 24, "'Cz__a'"),
    _typed("numbers as words", ["1.5"] * 24, "'Cz__a'", ending=CLEAR),
    _typed("structures", [{"x": 1.0}] * 24, "'Cz__a'"),
    _typed("bytes", [b"\x00\xff"] * 24, "'Cz__a'"),
    _typed("decimals", [Decimal("1.5")] * 24, ending=CLEAR),
    _typed("truths", [True, False] * 12, ending=CLEAR),
    _typed("nothing", pa.nulls(24), ending=CLEAR),
    _typed("integers with gaps", [1, None] * 12, ending=CLEAR),
    _typed("categories", pa.array(["a", "b"] * 12).dictionary_encode(), "'Cz__a'"),
    _typed("infinity", [np.inf] * 24, "'Cz__a'"),
    _bad_table("thousands with commas", csv_bytes().replace(b"0.", b'"1,0', 1), ending=CLEAR),
    _bad_table("per cent", TEXT.replace("0.1", "10%", 1).encode(), ending=CLEAR),
    _bad_table("a number of 400 digits", (TEXT + f"s9,HC,{'9' * 400},1,1,1\n").encode()),
    _bad_table("1e308", csv_bytes(_frame().assign(Cz__a=1e308)), "'Cz__a'"),
    _bad_table("1e300", csv_bytes(_frame().assign(Cz__a=1e300)), ending=ACCEPTED),
    _bad_table("1e-320 everywhere", csv_bytes(_frame().assign(Cz__a=1e-320)), ending=CLEAR),
    _bad_table("two spellings of a subject", csv_bytes(_frame().replace({"s3": "S2"})), "S2"),
    _bad_table(
        "two spellings of a label", csv_bytes(_frame().assign(label=["HC", "hc"] * 12)), "hc"
    ),
    _bad_table("two spellings of a channel", csv_bytes(_frame(columns=("Cz__a", "CZ__a")))),
    _bad_table(
        "an unnamed index",
        csv_bytes(_frame().reset_index().rename(columns={"index": ""})),
        ending=ACCEPTED,
    ),
    _bad_table("a comment first", b"# made by R\n" + csv_bytes()),
    _bad_table("a line that names the separator", b"sep=;\n" + csv_bytes(sep=";"), ending=CLEAR),
    _bad_table("only CR, from an old Macintosh", csv_bytes(lineterminator="\r"), ending=CLEAR),
    _bad_table("empty lines between", TEXT.replace("\n", "\n\n").encode(), ending=CLEAR),
    _bad_table(
        "a subject with two labels",
        csv_bytes(_frame().assign(subject=["s1", "s2", "s2"] * 8)),
        ending=CLEAR,
    ),
    _bad_table(
        "one subject per class", csv_bytes(_frame().assign(subject=["a", "b"] * 12)), ending=CLEAR
    ),
    _bad_table("one row", csv_bytes(_frame().iloc[:1])),
    _bad_table(
        "a constant table",
        csv_bytes(_frame().assign(**dict.fromkeys(_frame().columns[2:], 7.0))),
        ending=CLEAR,
    ),
]


def _pieces(change, folder):
    """A folder of two Parquet files, of which one was changed."""
    (folder / "pieces").mkdir()
    (folder / "pieces" / "a.parquet").write_bytes(parquet_bytes())
    change(folder / "pieces" / "b.parquet")
    return ["select", str(folder / "pieces")]


def _piece(name, change, *said, ending=REFUSED):
    return Case(f"folder of tables: {name}", ending, ("pieces", *said), partial(_pieces, change))


def _other(content):
    return lambda path: path.write_bytes(content)


PIECES = [
    _piece("an empty file", _other(b"")),
    _piece("random bytes", _other(np.random.default_rng(0).bytes(500))),
    _piece("a cut file", _other(parquet_bytes()[:-50])),
    _piece("other columns", _other(parquet_bytes(_frame(columns=("O1__a", "O2__a"))))),
    _piece("no label", _other(parquet_bytes(_frame().drop(columns="label")))),
    _piece("words for numbers", _other(_arrow(Cz__a=pa.array(["high"] * 24)))),
    _piece("infinity", _other(_arrow(Cz__a=pa.array([np.inf] * 24)))),
    _piece("a third label", _other(parquet_bytes(_frame().assign(label="PD"))), ending=CLEAR),
    _piece("a folder by that name", lambda path: path.mkdir(), ending=CLEAR),
    _piece("a link to nothing", lambda path: path.symlink_to("nowhere"), ending=CLEAR),
    _piece("a link to itself", lambda path: path.symlink_to(path), ending=CLEAR),
    _piece("a pipe", os.mkfifo),
]

# --- manifests --------------------------------------------------------------------------


def _manifest(content, folder, change=None):
    for seed in (1, 2):
        (folder / f"s{seed}.edf").write_bytes(files_of_format("edf", seed=seed)["recording.edf"])
    if change is not None:
        change(folder)
    (folder / "study.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return ["features", str(folder / "study.csv"), *QUICK]


def _listed(name, line, *said, ending=REFUSED, change=None):
    words = ("study.csv", *said) if ending == REFUSED else said
    build = partial(_manifest, PLAIN + line + "\n", change=change)
    return Case(f"manifest: {name}", ending, words, build)


MANIFESTS = [
    _listed("an address", "https://example.org/s3.edf,s3,HC", "line 4"),
    _listed("a path of Windows", "C:\\data\\s3.edf,s3,HC", "line 4"),
    _listed("somebody's home", "~nobody-at-all/s3.edf,s3,HC", "line 4"),
    _listed("a path of blanks", "   ,s3,HC", "line 4"),
    _listed("the folder itself", ".,s3,HC", ending=CLEAR),
    Case(
        "manifest: a pipe",
        REFUSED,
        ("s3.edf",),
        partial(_manifest, PLAIN + "s3.edf,s3,HC\n", change=lambda at: os.mkfifo(at / "s3.edf")),
    ),
    Case(
        "manifest: a device",
        REFUSED,
        ("/dev/zero",),
        partial(_manifest, PLAIN + "/dev/zero,s3,HC\n"),
    ),
    _listed(
        "a link to itself",
        "s3.edf,s3,HC",
        "s3.edf",
        change=lambda at: (at / "s3.edf").symlink_to(at / "s3.edf"),
    ),
    _listed("two spellings of a subject", "s1.edf,S1,HC", "S1"),
    _listed("two spellings of a label", "s1.edf,s3,hc", "hc"),
    Case(
        "manifest: a page of JSON",
        REFUSED,
        ("study.csv",),
        partial(_manifest, '[{"path": "s1.edf", "subject": "s1", "label": "HC"}]'),
    ),
    Case("manifest: a web page", REFUSED, ("study.csv",), partial(_manifest, HTML)),
    Case(
        "manifest: a line that names the separator",
        CLEAR,
        ("study.csv",),
        partial(_manifest, "sep=,\n" + PLAIN),
    ),
    Case("manifest: only commas", REFUSED, ("study.csv",), partial(_manifest, ",,,\n" * 9)),
    Case(
        "manifest: a column of the table's own",
        CLEAR,
        ("study.csv",),
        partial(
            _manifest, "path,subject,label,epoch,Cz__a\ns1.edf,s1,HC,1,2\ns2.edf,s2,MDD,1,2\n"
        ),
    ),
    Case(
        "manifest: labels of 5000 letters",
        CLEAR,
        ("study.csv",),
        partial(_manifest, PLAIN.replace("MDD", "m" * 5000)),
    ),
]

# --- BIDS trees -------------------------------------------------------------------------

GROUPS = b"participant_id\tgroup\nsub-01\tHC\nsub-02\tMDD\n"


def _tree(participants, folder, change=None):
    root = folder / "tree"
    for seed, subject in enumerate(("01", "02")):
        place = root / f"sub-{subject}" / "eeg"
        place.mkdir(parents=True)
        content = files_of_format("edf", seed=seed)["recording.edf"]
        (place / f"sub-{subject}_task-rest_eeg.edf").write_bytes(content)
    (root / "participants.tsv").write_bytes(participants)
    (root / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.9.0"}')
    if change is not None:
        change(root)
    return ["features", str(root), *QUICK]


def _bids(name, participants, *said, ending=REFUSED, change=None):
    words = () if ending == ACCEPTED else said
    return Case(f"bids: {name}", ending, words, partial(_tree, participants, change=change))


def _beside(name, content):
    """Put a file beside the recording of the second subject."""

    def do(root):
        path = root / "sub-02" / "eeg" / f"sub-02_task-rest_{name}"
        path.write_bytes(content)

    return do


def _only_folder(root):
    (root / "sub-03").mkdir()


BIDS = [
    _bids("sound", GROUPS, ending=ACCEPTED),
    _bids("only a header", b"participant_id\tgroup\n", "participants.tsv"),
    _bids("ragged", GROUPS + b"sub-03\n", "participants.tsv"),
    _bids("a cell too many", GROUPS + b"sub-03\tHC\tx\n", "participants.tsv"),
    _bids("UTF-16", GROUPS.decode().encode("utf-16"), "participants.tsv", ending=CLEAR),
    _bids("a byte order mark", b"\xef\xbb\xbf" + GROUPS, ending=ACCEPTED),
    _bids("CRLF", GROUPS.replace(b"\n", b"\r\n"), ending=ACCEPTED),
    _bids("labels unknown", GROUPS.replace(b"MDD", b"n/a"), "participants.tsv", ending=CLEAR),
    _bids("no sub-", GROUPS.replace(b"sub-", b""), "participants.tsv", ending=CLEAR),
    _bids("a column twice", GROUPS.replace(b"group", b"participant_id"), "participants.tsv"),
    _bids("two columns of labels", b"participant_id\tgroup\tdiagnosis\n" + b"sub-01\tHC\tHC\n"
          b"sub-02\tMDD\tMDD\n", "participants.tsv", ending=CLEAR),
    _bids("random bytes", np.random.default_rng(0).bytes(300), "participants.tsv"),
    _bids("a web page", HTML, "participants.tsv"),
    _bids("a subject of an empty folder", GROUPS, change=_only_folder, ending=CLEAR),
    _bids("channels: empty", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("channels.tsv", b"")),
    _bids("channels: random bytes", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("channels.tsv", np.random.default_rng(0).bytes(300))),
    _bids("channels: other names", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("channels.tsv", b"name\ttype\tunits\tstatus\nQ9\tEEG\tuV\tbad\n")),
    _bids("channels: ragged", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("channels.tsv", b"name\ttype\tunits\tstatus\nFp1\tEEG\nCz\n")),
    _bids("channels: an unknown status", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("channels.tsv", b"name\ttype\tunits\tstatus\nFp1\tEEG\tuV\tmeh\n")),
    _bids("sidecar: not JSON", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("eeg.json", b"{")),
    _bids("sidecar: a list", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("eeg.json", b"[1]")),
    _bids("sidecar: nested beyond all", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("eeg.json", b"[" * 100_000)),
    _bids("sidecar: numbers in words", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("eeg.json", b'{"PowerLineFrequency": "fifty", "EEGChannelCount": null}')),
    _bids("events: random bytes", GROUPS, "sub-02", ending=CLEAR,
          change=_beside("events.tsv", np.random.default_rng(0).bytes(300))),
    _bids("a recording that is none", GROUPS, "sub-02", change=_beside("eeg.edf", HTML)),
    _bids("two recordings of a task", GROUPS, ending=CLEAR, change=_beside(
        "eeg.bdf", files_of_format("bdf")["recording.bdf"])),
    _bids("a loop of links", GROUPS, ending=CLEAR,
          change=lambda root: (root / "sub-01" / "again").symlink_to(root)),
]  # fmt: skip

# --- headers of recordings --------------------------------------------------------------


def _changed(kind, change, folder):
    files = dict(files_of_format(kind))
    first = FIRST_FILE[kind]
    files[first] = change(files[first])
    return study(folder, files, first)


def _edf(name, start, text, width=8, ending=SKIPPED):
    """A field of the header of an EDF file with three channels (and no annotations)."""

    def change(whole):
        return whole[:start] + text.encode().ljust(width)[:width] + whole[start + width :]

    return Case(f"edf: {name}", ending, ("recording.edf",), partial(_changed, "edf", change))


def _vhdr(name, old, new, ending=SKIPPED):
    def change(whole):
        text = whole.decode()
        assert old in text
        return text.replace(old, new).encode()

    return Case(
        f"brainvision: {name}", ending, ("recording.vhdr",), partial(_changed, "vhdr", change)
    )


def _edf_channels():
    whole = files_of_format("edf")["recording.edf"]
    return int(whole[252:256])


def _at(field, channel=0, width=8):
    """Where a field of a channel stands: labels, transducers, units, and so on."""
    n = _edf_channels()
    widths = {"label": 0, "unit": 96, "physical_min": 104, "physical_max": 112,
              "digital_min": 120, "digital_max": 128, "samples": 216}  # fmt: skip
    return 256 + n * widths[field] + channel * width


HEADERS = [
    _edf("no channels", 252, "0", 4),
    _edf("9999 channels", 252, "9999", 4),
    _edf("minus one channel", 252, "-1", 4),
    _edf("a header of no bytes", 184, "0", ending=EITHER),
    _edf("minus one records, as while recording", 236, "-1", ending=EITHER),
    _edf("records that last for ever", 244, "1e300", ending=EITHER),
    _edf("records of a negative time", 244, "-1"),
    _edf("records of NaN", 244, "nan"),
    _edf("a date of letters", 168, "xx.yy.zz", ending=EITHER),
    _edf("physical maximum = minimum", _at("physical_max"), "0.0", ending=EITHER),
    _edf("physical maximum in words", _at("physical_max"), "high"),
    _edf("digital maximum in words", _at("digital_max"), "high"),
    _edf("no samples in a record", _at("samples"), "0", ending=EITHER),
    _edf("samples in words", _at("samples"), "many"),
    _edf("a channel without a name", _at("label", width=16), " ", 16, ending=EITHER),
    _vhdr("signals elsewhere", "DataFile=recording.eeg", "DataFile=../../../etc/passwd"),
    _vhdr("signals by another name", "DataFile=recording.eeg", "DataFile=other.eeg"),
    _vhdr("no common infos", "[Common Infos]", "[Other Infos]"),
    _vhdr("an unknown number format", "IEEE_FLOAT_32", "IEEE_FLOAT_99"),
    _vhdr("channels in words", "NumberOfChannels=3", "NumberOfChannels=three"),
    _vhdr("more channels than described", "NumberOfChannels=3", "NumberOfChannels=99", EITHER),
    _vhdr("an interval of zero", "SamplingInterval=4000", "SamplingInterval=0"),
    _vhdr("an interval in words", "SamplingInterval=4000", "SamplingInterval=fast"),
    _vhdr("nothing but its first line", "[Common Infos]", "", EITHER),
]

CASES = [*TABLES, *PIECES, *MANIFESTS, *BIDS, *HEADERS]
