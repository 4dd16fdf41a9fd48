"""Look for damage in files of recordings before MNE and scipy read them.

A file that lost its end would count as a short recording, and other damage would end the process
or never end: scipy's ``read_numeric`` takes the type of a MATLAB element as an index into a table
without looking whether it is one, and MNE follows tags of FIF files that lead in a circle.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from idfsmec._files import refuse_oversized
from idfsmec.errors import InputError, reason_of

BYTES_PER_SAMPLE = {".edf": 2, ".bdf": 3}
# Seconds. Times in files are rounded; pieces closer than this follow each other.
LEAST_PAUSE = 0.001
_FIF_BEGINS = 100  # the first tag of every FIF file

# Kinds of elements and classes of variables (MathWorks, "MAT-File Format", tables 1-1 and 1-3).
_MATRIX, _COMPRESSED = 14, 15
_PLAIN = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})  # integers, floats and text
_CONTAINERS = frozenset({1, 2, 3})  # cells, structures, objects
_OPAQUE = 17  # what only MATLAB itself can read; has no sizes
# How many plain elements a variable of a class begins with: flags, sizes, name, and what follows.
# Numbers have their real part, text itself, structures the names of their fields, and so on.
_LEAST = {1: 3, 2: 5, 3: 6, 4: 4, 5: 6, 16: 3, _OPAQUE: 4} | dict.fromkeys(range(6, 16), 4)
_COMPLEX = 0x0800  # the flag of an imaginary part, which classes 5 to 15 may have
_DEEPEST = 64
_HARMLESS = 1 << 20  # so many cells cost little, even of structures without fields


def check_file(path: Path) -> None:
    """Refuse a file that is damaged, by its format."""
    suffix = path.suffix.lower()
    if suffix in BYTES_PER_SAMPLE:
        _check_records(path)
    elif suffix in (".fif", ".gz"):
        _check_tags(path)
    elif suffix == ".set":
        _check_elements(path)


# --- EDF and BDF --------------------------------------------------------------------------


class EdfHeader(NamedTuple):
    """Data records of an EDF or BDF file, by its header."""

    kind: bytes
    n_bytes: int
    n_records: int
    seconds: float
    labels: list[bytes]
    samples: list[int]
    has_range: list[bool]  # whether the physical minimum and maximum differ


def read_edf_header(path: Path) -> EdfHeader:
    """Read a header; raises ValueError where it has no numbers."""
    with path.open("rb") as file:
        head = file.read(256)
        n_signals = int(head[252:256])
        # Of each signal: label, transducer, units, ranges, filters, samples per record.
        signals = file.read(max(256 * n_signals, 0))

    def fields(offset: int, width: int) -> list[bytes]:
        starts = range(offset * n_signals, (offset + width) * n_signals, width)
        return [signals[start : start + width] for start in starts]

    return EdfHeader(
        head[192:197],
        int(head[184:192]),
        int(head[236:244]),
        float(head[244:252]),
        fields(0, 16),
        [int(count) for count in fields(216, 8)],
        [low != high for low, high in zip(fields(104, 8), fields(112, 8), strict=True)],
    )


def _check_records(path: Path) -> None:
    """Compare the size of a file with the number of data records in its header."""
    width = BYTES_PER_SAMPLE[path.suffix.lower()]
    with path.open("rb") as file:
        begin = file.read(8)
    # Read as the other one, either would be another signal.
    other, begins = ("BDF", b"\xffBIOSEMI") if width == 2 else ("EDF", b"0       ")
    if begin == begins:
        raise InputError(f"{path}: this is {other}, not {path.suffix}. Name it .{other.lower()}.")
    try:
        header = read_edf_header(path)
    except ValueError:
        # The reader's own words would quote what stands there, which may be a name.
        raise InputError(
            f"{path}: the header has no numbers where EDF and BDF files have them. Check "
            "that the file is whole and of that format."
        ) from None
    record = width * sum(header.samples)
    if record > 0 and not header.seconds > 0:
        raise InputError(
            f"{path}: the header says that data records last {header.seconds:g} s, which gives "
            "no sampling rate. Repair the header with the program that wrote it."
        )
    if header.n_records > 0 and record > 0:
        there = max(path.stat().st_size - header.n_bytes, 0) // record
        if there < header.n_records:
            raise InputError(
                f"{path}: the file is cut short: {there} of {header.n_records} data records are "
                "present. Copy it again from its source."
            )


def find_pauses(path: Path) -> list[float]:
    """List the seconds of signal before each pause of a discontinuous EDF or BDF file."""
    width = BYTES_PER_SAMPLE.get(path.suffix.lower(), 0)
    try:
        header = read_edf_header(path) if width else None
        if header is None or header.kind not in (b"EDF+D", b"BDF+D"):
            return []
        marks = next(i for i, label in enumerate(header.labels) if b"Annotations" in label)
        first = header.n_bytes + width * sum(header.samples[:marks])
        onsets = []
        with path.open("rb") as file:
            for record in range(header.n_records):
                file.seek(first + record * width * sum(header.samples))
                text = file.read(width * header.samples[marks])
                # "+12.5" and the byte 20: when this record began
                onsets.append(float(text.split(b"\x14", 1)[0].split(b"\x15")[0]))
    except (OSError, ValueError, StopIteration):
        return []  # damaged
    late = np.abs(np.diff(onsets) - header.seconds) > LEAST_PAUSE
    return [(i + 1) * header.seconds for i in np.flatnonzero(late)]


# --- FIF ----------------------------------------------------------------------------------


def open_unpacked(path: Path) -> BufferedIOBase:
    """Open a file, or what a ``.gz`` file holds."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _check_tags(path: Path) -> None:
    """Refuse a FIF file whose tags lead in a circle: MNE would follow them until memory ends."""
    targets: set[int] = set()  # of steps back; a circle leads to the same one again and again
    position = 0
    with open_unpacked(path) as file:
        while len(head := file.read(16)) == 16:
            kind, _, size, following = struct.unpack(">iIii", head)
            if position == 0 and kind != _FIF_BEGINS:
                return  # no FIF file at all, as MNE will say
            before, position = position, following or position + 16 + size
            if position < 0:
                return  # the last tag
            if position <= before:
                if position in targets:
                    raise InputError(
                        f"{path}: the file is damaged (its tags lead in a circle). Copy it again "
                        "from its source."
                    )
                targets.add(position)
            file.seek(position)


# --- MATLAB -------------------------------------------------------------------------------


def load_mat(path: Path, **options: Any) -> dict[str, Any]:
    """Read a MATLAB file up to version 7."""
    from scipy.io import loadmat

    try:
        _check_elements(path)
        variables: dict[str, Any] = loadmat(path, **options)
        return variables
    except NotImplementedError as error:
        raise InputError(
            f"{path}: this file is of MATLAB version 7.3, the release is not. Save it again in "
            "MATLAB with save(..., '-v7')."
        ) from error
    except Exception as error:
        # scipy raises anything on a damaged file, from ValueError to zlib.error.
        raise InputError(f"{path}: not a readable MATLAB file ({reason_of(error)}).") from error


def _check_elements(path: Path) -> None:
    """Look at every tag of a MATLAB file of version 5 to 7, and at the sizes of version 7.3."""
    with path.open("rb") as file:
        header = file.read(128)
        order = "<" if header[126:128] == b"IM" else ">"
        version = header[125:126] if order == "<" else header[124:125]
        if len(header) < 128 or 0 in header[:4] or version != b"\x01":
            _check_datasets(path)
            return  # too short, version 4 or 7.3: their readers look for themselves
        content = memoryview(file.read())
    for kind, variable in _elements(content, order):
        if kind == _COMPRESSED:
            try:
                tag = zlib.decompressobj().decompress(variable, 8)
                length = int.from_bytes(tag[4:], "little" if order == "<" else "big")
                refuse_oversized("a compressed variable", length // 4)  # bytes of a number
                unpacked = zlib.decompressobj().decompress(variable, 8 + length)
            except zlib.error as error:
                raise ValueError(f"a compressed variable is damaged: {error}") from error
            kind, variable = next(_elements(memoryview(unpacked), order), (0, variable))
        if kind != _MATRIX:
            raise ValueError(f"a variable is of kind {kind}")
        _check_variable(variable, order)


def _check_datasets(path: Path) -> None:
    import h5py  # comes with pymatreader

    sizes: list[int] = []
    # What h5py cannot open, the reader names.
    with suppress(OSError, RuntimeError), h5py.File(path) as file:
        file.visititems(lambda _, item: sizes.append(getattr(item, "size", 0) or 0))
    refuse_oversized("its variables", sum(sizes))


def _elements(body: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield kind and content of the elements that follow each other."""
    position = 0
    while position < len(body):
        if len(body) - position < 8:
            raise ValueError("it is cut short")
        kind, length = struct.unpack_from(f"{order}II", body, position)
        small = kind >> 16  # a small element has kind, length and content in its tag
        if small:
            kind, length = kind & 0xFFFF, min(small, 4)
        position += 4 if small else 8
        if position + length > len(body):
            raise ValueError("an element is longer than its variable, or cut short")
        yield kind, body[position : position + length]
        # Plain elements end at multiples of 8.
        position += 4 if small else length + (-length % 8 if kind in _PLAIN else 0)


def _check_variable(body: memoryview, order: str, depth: int = 1) -> None:
    """Check the elements of one variable, structures and cells to their depth."""
    if depth > _DEEPEST:
        raise ValueError(f"variables are nested deeper than {_DEEPEST}")
    plain, n_inside = [], 0  # elements in front of the first variable inside, and those variables
    for kind, element in _elements(body, order):
        if kind == _MATRIX:
            n_inside += 1
            _check_variable(element, order, depth + 1)
        elif kind not in _PLAIN:
            raise ValueError(f"an element is of kind {kind}")
        elif not n_inside:
            plain.append(element)
    if len(body):
        _check_sizes(plain, len(body), order)


def _check_sizes(plain: list[memoryview], n_bytes: int, order: str) -> None:
    """Refuse a variable with fewer elements, or less room, than its flags and sizes ask for."""
    if len(plain) < 2 or len(plain[0]) != 8:
        raise ValueError("a variable has no flags")
    flags = struct.unpack(f"{order}I", plain[0][:4])[0]
    kind = flags & 0xFF
    # Two sizes at least: of text without any, scipy makes an array that is not there.
    if kind != _OPAQUE and (len(plain[1]) < 8 or len(plain[1]) % 4):
        raise ValueError("a variable has no sizes")
    least = _LEAST.get(kind, 0) + (5 <= kind < 16 and bool(flags & _COMPLEX))
    if len(plain) < least:
        raise ValueError(f"a variable has {len(plain)} elements instead of {least}")
    if kind in _CONTAINERS:
        sizes = struct.unpack(f"{order}{len(plain[1]) // 4}i", plain[1])
        if math.prod(sizes) > max(n_bytes // 8, _HARMLESS):
            raise ValueError("a variable has more cells than it has room for")
