"""MATLAB files, walked through before scipy reads them: damage ends in an error, not a crash.

scipy takes the type of an element as an index into a table without looking whether it is one
(``read_numeric`` in ``_mio5_utils.pyx``), so that a flipped bit can end the whole process: in a
type, or in the flags of a variable, which then seems to have an imaginary part where the next
variable begins. Here every tag of the file is looked at first, and whether each variable has the
elements of its class; signals themselves are skipped, not read. A variable that claims more cells
than it has room for would have scipy ask for all the memory there is.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

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
_CHUNK = 1 << 20
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
    """Look at every tag of a MATLAB file of version 5 to 7; other versions are left alone.

    Raises
    ------
    DamagedMatError
        If a tag is impossible or says more than the file holds.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(128)
        order = "<" if header[126:128] == b"IM" else ">"
        version = header[125:126] if order == "<" else header[124:125]
        if len(header) < 128 or 0 in header[:4] or version != b"\x01":
            return  # too short, version 4 or 7.3: their readers look for themselves
        while tag := file.read(8):
            kind, n_bytes = _unpack_tag(tag, order)
            end = file.tell() + n_bytes
            if end > size:
                raise DamagedMatError("it is cut short")
            if kind == _MATRIX:
                _check_inside(_Plain(file, size), n_bytes, order, depth=1)
            elif kind == _COMPRESSED:
                packed = _Packed(file, n_bytes)
                try:
                    kind, length = _unpack_tag(packed.read(8), order)
                    if kind != _MATRIX:
                        raise DamagedMatError(f"a compressed variable is of kind {kind}")
                    _check_inside(packed, length, order, depth=1)
                except zlib.error as error:
                    raise DamagedMatError(f"a compressed variable is damaged: {error}") from error
            else:
                raise DamagedMatError(f"a variable is of kind {kind}")
            file.seek(end)


class _Plain:
    """Reads and skips in a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size

    def read(self, n: int) -> bytes:
        return self._file.read(n)

    def skip(self, n: int) -> None:
        if self._file.tell() + n > self._size:
            raise DamagedMatError("it is cut short")
        self._file.seek(n, 1)


class _Packed:
    """Reads and skips in a compressed element, holding a chunk at a time."""

    def __init__(self, file: BinaryIO, n_bytes: int) -> None:
        self._file, self._left = file, n_bytes
        self._unpack = zlib.decompressobj()

    def read(self, n: int) -> bytes:
        return b"".join(self._pieces(n))

    def skip(self, n: int) -> None:
        if sum(map(len, self._pieces(n))) < n:
            raise DamagedMatError("a compressed variable is cut short")

    def _pieces(self, n: int) -> Iterator[bytes]:
        while n > 0 and not self._unpack.eof:
            packed = self._unpack.unconsumed_tail
            if not packed:
                packed = self._file.read(min(self._left, _CHUNK))
                self._left -= len(packed)
            piece = self._unpack.decompress(packed, min(n, _CHUNK))
            if not (piece or packed):
                return
            n -= len(piece)
            yield piece


def _check_inside(stream: _Plain | _Packed, n_bytes: int, order: str, depth: int) -> None:
    """Check the elements of one matrix, structures and cells to their depth."""
    if depth > _DEEPEST:
        raise DamagedMatError(f"variables are nested deeper than {_DEEPEST}")
    left = n_bytes
    heads: list[bytes] = []  # flags, then dimensions
    n_plain, n_inside = 0, 0  # elements in front of the first variable inside, and those variables
    while left > 0:
        kind, length = _unpack_tag(stream.read(8), order)
        left -= 8
        if kind >> 16:  # a small element has type, length and value in the tag
            kind, length = kind & 0xFFFF, 0
            if kind == _MATRIX:
                raise DamagedMatError("a variable has no room in its tag")
        if kind != _MATRIX and kind not in _PLAIN:
            raise DamagedMatError(f"an element is of kind {kind}")
        if length > left:
            raise DamagedMatError("an element is longer than its variable")
        if kind == _MATRIX:
            n_inside += 1
            _check_inside(stream, length, order, depth + 1)
        else:
            n_plain += not n_inside
            # Elements begin at multiples of 8; the last one may go without the filling.
            value, length = length, min(-(-length // 8) * 8, left)
            if len(heads) < 2 and length <= _LONGEST_HEAD:
                heads.append(stream.read(length)[:value])
                _check_room(heads, n_bytes, order)
            else:
                stream.skip(length)
        left -= length
    if n_bytes:
        _check_parts(heads, n_plain, order)


def _check_parts(heads: list[bytes], n_plain: int, order: str) -> None:
    """Refuse a variable with fewer elements than its flags have a reader expect."""
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


def _check_room(heads: list[bytes], n_bytes: int, order: str) -> None:
    """Refuse cells and structures with more members than there are bytes to hold them."""
    if len(heads) < 2 or len(heads[0]) < 4:
        return
    kind = struct.unpack(f"{order}I", heads[0][:4])[0] & 0xFF
    sizes = struct.unpack(f"{order}{len(heads[1]) // 4}i", heads[1][: len(heads[1]) // 4 * 4])
    if kind in _CONTAINERS and math.prod(sizes) > max(n_bytes // 8, _HARMLESS):
        raise DamagedMatError("a variable has more cells than it has room for")


def _unpack_tag(tag: bytes, order: str) -> tuple[int, int]:
    if len(tag) < 8:
        raise DamagedMatError("it is cut short")
    kind, n_bytes = struct.unpack(f"{order}II", tag)
    return kind, n_bytes
