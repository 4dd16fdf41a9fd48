"""Read MATLAB files, walked through before scipy reads them: damage is an error, not a crash.

scipy takes the type of an element as an index into a table without looking whether it is one
(``read_numeric`` in ``_mio5_utils.pyx``), so that a flipped bit can end the whole process: in a
type, or in the flags of a variable, which then seems to have an imaginary part where the next
variable begins. Here every tag of the file is looked at first, and whether each variable has the
elements of its class. A variable that claims more cells than it has room for would have scipy ask
for all the memory there is.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from pathlib import Path
from typing import Any

from idfsmec.errors import InputError

_MATRIX, _COMPRESSED = 14, 15
# Integers, floats and text of the format's description (MathWorks, "MAT-File Format", table 1-1).
_PLAIN = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})
_DEEPEST = 64
# Arrays of these classes hold variables of their own: cells, structures, objects.
_CONTAINERS = frozenset({1, 2, 3})
_OPAQUE = 17  # what only MATLAB itself can read; has no sizes
# How many plain elements a variable of a class begins with: flags, sizes, name, and what follows.
# Numbers have their real part, text itself, structures the names of their fields, and so on.
_LEAST = {1: 3, 2: 5, 3: 6, 4: 4, 5: 6, 16: 3, _OPAQUE: 4} | dict.fromkeys(range(6, 16), 4)
_NUMBERS = frozenset({5, *range(6, 16)})  # those that have an imaginary part where a flag says so
_COMPLEX = 0x0800
_HARMLESS = 1 << 20  # so many cells cost little, even of structures without fields
_LONGEST_HEAD = 256


class DamagedMatError(ValueError):
    """The file does not follow the format; the message says where."""


def load_mat(path: Path, **options: Any) -> dict[str, Any]:
    """Read a MATLAB file up to version 7."""
    from scipy.io import loadmat

    try:
        check_elements(path)
        return loadmat(path, **options)
    except NotImplementedError as error:
        raise InputError(
            f"{path}: this file is of MATLAB version 7.3, the release is not. Save it again in "
            "MATLAB with save(..., '-v7')."
        ) from error
    except Exception as error:
        # scipy raises anything on a damaged file, from ValueError to zlib.error.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: not a readable MATLAB file ({reason}).") from error


def check_elements(path: Path) -> None:
    """Look at every tag of a MATLAB file of version 5 to 7; other versions are left alone."""
    with path.open("rb") as file:
        header = file.read(128)
        order = "<" if header[126:128] == b"IM" else ">"
        version = header[125:126] if order == "<" else header[124:125]
        if len(header) < 128 or 0 in header[:4] or version != b"\x01":
            return  # too short, version 4 or 7.3: their readers look for themselves
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            position = 128
            while position < len(content):
                kind, length = _unpack_tag(content[position : position + 8], order)
                position += 8
                if position + length > len(content):
                    raise DamagedMatError("it is cut short")
                if kind not in (_MATRIX, _COMPRESSED):
                    raise DamagedMatError(f"a variable is of kind {kind}")
                body = content[position : position + length]
                body = _unpacked(body, order) if kind == _COMPRESSED else body
                _check_variable(memoryview(body), order)
                position += length


def _unpacked(packed: bytes, order: str) -> bytes:
    """Decompress a variable, as much of it as its tag says."""
    unpack = zlib.decompressobj()
    try:
        kind, length = _unpack_tag(unpack.decompress(packed, 8), order)
        if kind != _MATRIX:
            raise DamagedMatError(f"a compressed variable is of kind {kind}")
        body = unpack.decompress(unpack.unconsumed_tail, length) if length else b""
    except zlib.error as error:
        raise DamagedMatError(f"a compressed variable is damaged: {error}") from error
    if len(body) < length:
        raise DamagedMatError("a compressed variable is cut short")
    return body


def _check_variable(body: memoryview, order: str, depth: int = 1) -> None:
    """Check the elements of one variable, structures and cells to their depth."""
    if depth > _DEEPEST:
        raise DamagedMatError(f"variables are nested deeper than {_DEEPEST}")
    heads: list[bytes] = []  # flags, then sizes
    n_plain, n_inside = 0, 0  # elements in front of the first variable inside, and those variables
    position = 0
    while position < len(body):
        kind, length = _unpack_tag(body[position : position + 8], order)
        position += 8
        if kind >> 16:  # a small element has type, length and value in the tag
            kind, length = kind & 0xFFFF, 0
            if kind == _MATRIX:
                raise DamagedMatError("a variable has no room in its tag")
        if kind != _MATRIX and kind not in _PLAIN:
            raise DamagedMatError(f"an element is of kind {kind}")
        if position + length > len(body):
            raise DamagedMatError("an element is longer than its variable")
        element = body[position : position + length]
        if kind == _MATRIX:
            n_inside += 1
            _check_variable(element, order, depth + 1)
        else:
            n_plain += not n_inside
            if len(heads) < 2 and length <= _LONGEST_HEAD:
                heads.append(bytes(element))
            length = -(-length // 8) * 8  # elements begin at multiples of 8
        position += length
    if len(body):
        _check_parts(heads, n_plain, len(body), order)


def _check_parts(heads: list[bytes], n_plain: int, n_bytes: int, order: str) -> None:
    """Refuse a variable with fewer elements, or less room, than its flags and sizes ask for."""
    if len(heads) < 2 or len(heads[0]) != 8:
        raise DamagedMatError("a variable has no flags")
    flags = struct.unpack(f"{order}I", heads[0][:4])[0]
    kind = flags & 0xFF
    # Two sizes at least: of text without any, scipy makes an array that is not there.
    if kind != _OPAQUE and (len(heads[1]) < 8 or len(heads[1]) % 4):
        raise DamagedMatError("a variable has no sizes")
    least = _LEAST.get(kind, 0) + (kind in _NUMBERS and bool(flags & _COMPLEX))
    if n_plain < least:
        raise DamagedMatError(f"a variable has {n_plain} elements instead of {least}")
    if kind in _CONTAINERS:
        sizes = struct.unpack(f"{order}{len(heads[1]) // 4}i", heads[1])
        if math.prod(sizes) > max(n_bytes // 8, _HARMLESS):
            raise DamagedMatError("a variable has more cells than it has room for")


def _unpack_tag(tag: bytes | memoryview, order: str) -> tuple[int, int]:
    if len(tag) < 8:
        raise DamagedMatError("it is cut short")
    kind, n_bytes = struct.unpack(f"{order}II", tag)
    return kind, n_bytes
