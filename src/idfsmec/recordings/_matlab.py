"""Read MATLAB files, walked through before scipy reads them: damage is an error, not a crash.

scipy takes the type of an element as an index into a table without looking whether it is one
(``read_numeric`` in ``_mio5_utils.pyx``), so that a flipped bit can end the whole process: in a
type, or in the flags of a variable, which then seems to have an imaginary part where the next
variable begins. A variable that claims more cells than it has room for would have scipy ask for
all the memory there is.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from idfsmec._files import refuse_oversized
from idfsmec.errors import InputError, reason_of

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
        raise InputError(f"{path}: not a readable MATLAB file ({reason_of(error)}).") from error


def check_elements(path: Path) -> None:
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
