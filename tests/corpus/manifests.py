"""Manifests as spreadsheets, editors and people write them."""

from __future__ import annotations

from functools import partial

from .case import ACCEPTED, QUICK, REFUSED, Case
from .sound import files_of_format

PLAIN = "path,subject,label\ns1.edf,s1,HC\ns2.edf,s2,MDD\n"


def _manifest(content, folder):
    """Two sound recordings under a manifest; ``{folder}`` in it becomes the folder."""
    for seed in (1, 2):
        content_of = files_of_format("edf", seed=seed)["recording.edf"]
        (folder / f"s{seed}.edf").write_bytes(content_of)
    if isinstance(content, str):
        content = content.replace("{folder}", str(folder)).encode()
    (folder / "study.csv").write_bytes(content)
    return ["features", str(folder / "study.csv"), *QUICK]


def _folder_as_recording(folder):
    (folder / "s3.edf").mkdir()
    return _manifest(PLAIN + "s3.edf,s3,MDD\n", folder)


def _case(name, ending, content, *said):
    return Case(f"manifest: {name}", ending, ("study.csv", *said), partial(_manifest, content))


def _fine(name, content):
    return Case(
        f"manifest: {name}", ACCEPTED, ("from 2 participants",), partial(_manifest, content)
    )


CASES = [
    _case("empty", REFUSED, "", "'path' is missing"),
    _case("only a header", REFUSED, "path,subject,label\n", "no recordings"),
    _case("no column path", REFUSED, "edf,subject,label\ns1.edf,s1,HC\n", "'path' is missing"),
    _case("no column label", REFUSED, "path,subject\ns1.edf,s1\n", "'label' is missing"),
    _case("misspelt column", REFUSED, "path,subjects,label\ns1.edf,s1,HC\n", "Rename 'subjects'"),
    _case("column twice", REFUSED, "path,subject,label,label\ns1.edf,s1,HC,HC\n", "2 times"),
    _case("no label", REFUSED, PLAIN + "s1.edf,s3,\n", "line 4", "'label'"),
    _case("no subject", REFUSED, PLAIN + "s1.edf, ,HC\n", "line 4", "'subject'"),
    _case("two labels", REFUSED, PLAIN + "s1.edf,s2,HC\n", "line 4", "'MDD' in"),
    _case("missing path", REFUSED, PLAIN + "s9.edf,s3,HC\n", "line 4", "s9.edf"),
    _case("a path upwards to nothing", REFUSED, PLAIN + "../../x.edf,s3,HC\n", "x.edf"),
    _case("too many cells", REFUSED, PLAIN + "s1.edf,s3,HC,,x\n", "line 4", "5 cells"),
    _case("too few cells", REFUSED, PLAIN + "s1.edf\n", "line 4", "1 cells"),
    _case("a quote that never ends", REFUSED, PLAIN + '"s1.edf,s3,HC\n', "line 4"),
    _case("a cell of a megabyte", REFUSED, PLAIN + "s1.edf," + "x" * 2**20 + ",HC\n", "line 4"),
    _case("bytes of zero", REFUSED, PLAIN.encode() + b"\0\0\0", "not a text file"),
    _case("latin-1", REFUSED, PLAIN.replace("HC", "gesünd").encode("latin-1"), "UTF-8"),
    _case("half of UTF-16", REFUSED, PLAIN.encode("utf-16")[:-1], "UTF-"),
    _case("an Excel file", REFUSED, b"PK\x03\x04\x14\x00\x06\x00\x08\x00" + bytes(50), "not a"),
    _case("a name with a zero byte quoted", REFUSED, PLAIN + '"s1\0.edf",s3,HC\n', "text"),
    _case("a path of 5000 letters", REFUSED, PLAIN + "x" * 5000 + ",s3,HC\n", "line 4"),
    Case(
        "manifest: one recording for two subjects",
        REFUSED,
        ("s1.edf", "different participants"),
        partial(_manifest, PLAIN + "s1.edf,s3,MDD\n"),
    ),
    Case(
        "manifest: unknown bad channel",
        REFUSED,
        ("s2.edf", "'Q9'"),
        partial(_manifest, "path,subject,label,bads\ns1.edf,s1,HC,\ns2.edf,s2,MDD,Q9\n"),
    ),
    Case("manifest: a folder for a file", REFUSED, ("s3.edf",), _folder_as_recording),
    Case(
        "manifest: is a folder without participants",
        REFUSED,
        ("participants.tsv",),
        lambda folder: ["features", str(folder)],
    ),
    Case(
        "manifest: not there",
        REFUSED,
        ("none.csv", "no such"),
        lambda folder: ["features", str(folder / "none.csv")],
    ),
    # odd, but sound
    _fine("byte order mark", b"\xef\xbb\xbf" + PLAIN.encode()),
    _fine("UTF-16", PLAIN.encode("utf-16")),
    _fine("semicolons", PLAIN.replace(",", ";")),
    _fine("tabs", PLAIN.replace(",", "\t")),
    _fine("CRLF and no last line end", PLAIN.replace("\n", "\r\n").rstrip()),
    _fine("only CR, from an old Macintosh", PLAIN.replace("\n", "\r")),
    _fine("absolute paths", PLAIN.replace("s1.edf", "{folder}/s1.edf")),
    _fine("the same line twice", PLAIN + "s1.edf,s1,HC\n"),
    _fine("one class only", PLAIN.replace("MDD", "HC")),
    _fine("labels nobody knows", PLAIN.replace("MDD", "schwermütig?")),
    _fine("labels as numbers", PLAIN.replace("MDD", "1").replace("HC", "0")),
    _fine("labels as formulas", PLAIN.replace("MDD", "=1+1")),
]
