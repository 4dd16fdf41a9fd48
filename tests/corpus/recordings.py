"""Damaged recordings of every format, in the midst of a study that is otherwise sound."""

from __future__ import annotations

import io
from functools import partial

import numpy as np

from .case import ACCEPTED, EITHER, EMPTY, REFUSED, SKIPPED, Case, study
from .sound import (
    FIRST_FILE,
    eeglab_struct,
    files_of_format,
    flip_bits,
    make_raw,
    mat_bytes,
    raw_bytes,
)

HTML = b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n" * 20


def _with(kind, change, folder):
    """A recording whose first file was changed."""
    files = dict(files_of_format(kind))
    first = FIRST_FILE[kind]
    files[first] = change(files[first])
    return study(folder, files, first)


def _partner(kind, name, change, folder):
    """A recording whose second file was changed, or lost (None)."""
    files = dict(files_of_format(kind))
    changed = change(files.pop(name))
    return study(
        folder, files | ({name: changed} if changed is not None else {}), FIRST_FILE[kind]
    )


def _renamed(kind, name, folder):
    """A file whose ending says another format."""
    return study(folder, {name: files_of_format(kind)[FIRST_FILE[kind]]}, name)


def _renamed_fdt(folder):
    files = dict(files_of_format("set+fdt"))
    files["other.fdt"] = files.pop("recording.fdt")
    return study(folder, files, "recording.set")


def _own(name, raw_options, folder, change=lambda raw: raw):
    """A sound file of an odd recording."""
    return study(folder, {name: raw_bytes(change(make_raw(seed=3, **raw_options)), name)}, name)


def _bytes(name, content, folder):
    return study(folder, {name: content}, name)


def _npy(folder):
    file = io.BytesIO()
    np.save(file, np.zeros((3, 500)))
    return study(folder, {"bad.npy": file.getvalue()}, "bad.npy")


def _edf_field(start, text, content):
    return content[:start] + text.encode().ljust(8)[:8] + content[start + 8 :]


def _not_a_number(raw):
    raw._data[:] = np.nan
    return raw


def _damaged_everywhere():
    for kind, first in FIRST_FILE.items():
        header = {"edf": 1000, "bdf": 1000, "vhdr": 600}.get(kind, 400)
        damages = {
            "empty": (SKIPPED, lambda whole: b""),
            "cut in the header": (SKIPPED, lambda whole, n=header: whole[: n // 3]),
            "random bytes": (SKIPPED, lambda whole: np.random.default_rng(5).bytes(len(whole))),
            "a web page": (SKIPPED, lambda whole: HTML),
            "bits flipped in the header": (
                EITHER,
                lambda whole, n=header: flip_bits(whole, seed=7, within=n),
            ),
            "bits flipped anywhere": (EITHER, lambda whole: flip_bits(whole, seed=8)),
        }
        for what, (ending, change) in damages.items():
            yield Case(f"{kind}: {what}", ending, (first,), partial(_with, kind, change))


def _half(whole):
    return whole[: len(whole) // 2]


CASES = [
    *_damaged_everywhere(),
    Case(
        "edf: cut in the middle",
        SKIPPED,
        ("recording.edf", "cut short"),
        partial(_with, "edf", _half),
    ),
    Case(
        "bdf: cut in the middle",
        SKIPPED,
        ("recording.bdf", "cut short"),
        partial(_with, "bdf", _half),
    ),
    Case("set: cut in the middle", SKIPPED, ("recording.set",), partial(_with, "set", _half)),
    Case("fif: cut in the middle", SKIPPED, ("recording_raw.fif",), partial(_with, "fif", _half)),
    Case(
        "fdt: missing",
        SKIPPED,
        ("recording.set",),
        partial(_partner, "set+fdt", "recording.fdt", lambda whole: None),
    ),
    Case(
        "fdt: empty",
        SKIPPED,
        ("recording.set",),
        partial(_partner, "set+fdt", "recording.fdt", lambda whole: b""),
    ),
    Case(
        "fdt: cut in the middle",
        SKIPPED,
        ("recording.set",),
        partial(_partner, "set+fdt", "recording.fdt", _half),
    ),
    Case(
        "fdt: bits flipped",
        EITHER,
        ("recording.set",),
        partial(_partner, "set+fdt", "recording.fdt", partial(flip_bits, seed=9)),
    ),
    Case(
        "fdt: of a longer recording",
        SKIPPED,
        ("recording.set",),
        partial(_partner, "set+fdt", "recording.fdt", lambda whole: whole + whole),
    ),
    Case("fdt: under another name", SKIPPED, ("recording.set",), _renamed_fdt),
    Case(
        "brainvision: signals missing",
        SKIPPED,
        ("recording.vhdr",),
        partial(_partner, "vhdr", "recording.eeg", lambda whole: None),
    ),
    Case(
        "brainvision: signals empty",
        SKIPPED,
        ("recording.vhdr",),
        partial(_partner, "vhdr", "recording.eeg", lambda whole: b""),
    ),
    Case("fif called edf", SKIPPED, ("bad.edf",), partial(_renamed, "fif", "bad.edf")),
    Case("edf called bdf", SKIPPED, ("bad.bdf",), partial(_renamed, "edf", "bad.bdf")),
    Case("bdf called edf", SKIPPED, ("bad.edf",), partial(_renamed, "bdf", "bad.edf")),
    Case("edf called fif", SKIPPED, ("bad_raw.fif",), partial(_renamed, "edf", "bad_raw.fif")),
    Case("edf called set", SKIPPED, ("bad.set",), partial(_renamed, "edf", "bad.set")),
    Case("set called edf", SKIPPED, ("bad.edf",), partial(_renamed, "set", "bad.edf")),
    Case("set called fif", SKIPPED, ("bad_raw.fif",), partial(_renamed, "set", "bad_raw.fif")),
    Case("fif called set", SKIPPED, ("bad.set",), partial(_renamed, "fif", "bad.set")),
    Case("an ending nobody knows", SKIPPED, ("bad.xyz",), partial(_renamed, "edf", "bad.xyz")),
    Case("no ending", SKIPPED, ("bad",), partial(_renamed, "edf", "bad")),
    Case("numpy's own file", SKIPPED, ("bad.npy",), _npy),
    Case(
        "edf: letters for the number of channels",
        SKIPPED,
        ("recording.edf",),
        partial(_with, "edf", lambda w: w[:252] + b"abcd" + w[256:]),
    ),
    Case(
        "edf: records that last no time",
        SKIPPED,
        ("recording.edf",),
        partial(_with, "edf", partial(_edf_field, 244, "0")),
    ),
    Case(
        "edf: claims a billion records",
        SKIPPED,
        ("recording.edf", "cut short"),
        partial(_with, "edf", partial(_edf_field, 236, "99999999")),
    ),
    Case(
        "a set without signals",
        SKIPPED,
        ("bad.set",),
        partial(_bytes, "bad.set", mat_bytes({"something": np.arange(4.0)})),
    ),
    Case(
        "a set with fewer signals than names",
        SKIPPED,
        ("bad.set",),
        partial(
            _bytes,
            "bad.set",
            mat_bytes({"EEG": eeglab_struct(make_raw(), np.zeros((2, 2250), "f4"))}),
        ),
    ),
    # recordings that are sound files of something unusable
    Case(
        "shorter than an epoch",
        SKIPPED,
        ("bad_raw.fif", "short"),
        partial(_own, "bad_raw.fif", {"seconds": 2.0}),
    ),
    Case(
        "sampled at 20 Hz",
        SKIPPED,
        ("bad_raw.fif", "20"),
        partial(_own, "bad_raw.fif", {"sfreq": 20.0, "seconds": 60.0}),
    ),
    Case(
        "nothing but NaN",
        EMPTY,
        ("bad_raw.fif", "skipped 1 of 3"),
        partial(_own, "bad_raw.fif", {}, change=_not_a_number),
    ),
    Case(
        "no EEG channel",
        SKIPPED,
        ("bad_raw.fif", "no EEG channel"),
        partial(_own, "bad_raw.fif", {"names": ("ECG", "HEOG", "Status")}),
    ),
    # odd, but sound
    Case(
        "another sampling rate",
        ACCEPTED,
        ("written",),
        partial(_own, "bad_raw.fif", {"sfreq": 512.0}),
    ),
    Case(
        "other channels",
        ACCEPTED,
        ("not in the recording",),
        partial(_own, "bad_raw.fif", {"names": ("Pz", "Cz")}),
    ),
    *(
        Case(
            f"channels named {what}",
            ACCEPTED,
            ("written",),
            partial(_own, "bad.set", {"names": ("Cz", *names)}),
        )
        for what, names in {
            "with blanks": (" F p 1 ", "my channel"),
            "with slashes": ("../../etc/passwd", "a/b\\c"),
            "in other scripts": ("前額", "Електрод", "é̂"),
            "in HTML": ("<script>alert(1)</script>", "&amp;"),
            "as formulas": ("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)"),
            "with our separator": ("a__b", "__", "x__"),
            "with markup": ("[red]F3[/red]", "[/]"),
            "with line ends": ("a\nb", "c\rd"),
        }.items()
    ),
    Case(
        "nothing sound in the study",
        REFUSED,
        ("only.edf",),
        lambda folder: _only_bad(folder),
    ),
]


def _only_bad(folder):
    (folder / "only.edf").write_bytes(HTML)
    manifest = folder / "study.csv"
    manifest.write_text("path,subject,label\nonly.edf,s1,HC\n")
    return ["features", str(manifest), "--on-error", "skip"]
