"""Damaged MATLAB files end in an error; scipy alone would take the process down with it."""

import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from idfsmec.errors import InputError
from idfsmec.recordings import read_modma128

SOURCE_TREE = Path(__file__).parents[2] / "src"
SIGNALS = np.random.default_rng(0).normal(size=(129, 20)).astype(np.float32)
# All kinds of variables that the format has.
OTHERS = {
    "EEG": {"labels": np.array(["Fp1", "Cz"], dtype=object), "nested": {"rate": 250.0}},
    "text": "free text",
    "mask": np.array([[True, False]]),
    "nothing": np.zeros((0, 3)),
    "waves": np.array([[1 + 2j]]),
}


@pytest.fixture
def write(tmp_path):
    """Write a MATLAB file into a release; gives its path and what loads it."""

    def make(variables, **options):
        path = tmp_path / "02010002rest.mat"
        savemat(path, variables, **options)
        return path, lambda: read_modma128(tmp_path)[0].load()

    return make


@pytest.mark.parametrize("packed", [True, False])
def test_sound_files_pass(write, packed):
    _, load = write({"signals": SIGNALS, **OTHERS}, do_compression=packed)
    np.testing.assert_allclose(load().get_data(), SIGNALS * 1e-6, rtol=1e-6)


def test_files_of_version_4_are_left_to_scipy(write):
    _, load = write({"signals": SIGNALS}, format="4")
    np.testing.assert_allclose(load().get_data(), SIGNALS * 1e-6, rtol=1e-6)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_a_cut_file_is_refused(write, packed, kept):
    path, load = write({"signals": SIGNALS, **OTHERS}, do_compression=packed)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    with pytest.raises(InputError, match=r"02010002rest\.mat: not a readable MATLAB file"):
        load()


def test_the_type_that_makes_scipy_crash_is_refused(write):
    path, load = write({"a": SIGNALS})
    content = bytearray(path.read_bytes())
    assert content[176:180] == b"\x07\0\0\0"  # the type of the signals: single precision
    content[177] = 2  # 519 is no type; scipy takes it as an index into a table of twenty
    path.write_bytes(content)
    with pytest.raises(InputError, match="kind 519"):
        load()


def test_cells_nested_without_end_are_refused(write):
    nested = np.array(1.0)
    for _ in range(100):
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = nested
        nested = cell
    _, load = write({"a": nested})
    with pytest.raises(InputError, match="nested"):
        load()


def test_more_cells_than_the_file_has_room_for_are_refused(write):
    cells = np.array([["Cz"] * 5], dtype=object)
    path, load = write({"a": cells})
    content = path.read_bytes()
    dimensions = np.array([1, 5], "<i4").tobytes()
    assert content.count(dimensions) == 1
    path.write_bytes(content.replace(dimensions, np.array([1, 2**30], "<i4").tobytes()))
    with pytest.raises(InputError, match="more cells than it has room for"):
        load()  # scipy alone would take 8 GiB


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        (b"no stream", "compressed variable is damaged"),
        (zlib.compress(np.array([9, 8], "<u4").tobytes() + bytes(8)), "variable is of kind 9"),
        (zlib.compress(b""), "variable is of kind 0"),
        (zlib.compress(np.array([14, 99], "<u4").tobytes() + bytes(8)), "cut short"),
    ],
)
def test_a_compressed_variable_that_is_none_is_refused(write, inside, reason):
    path, load = write({"a": SIGNALS})
    tag = np.array([15, len(inside)], "<u4").tobytes()
    path.write_bytes(path.read_bytes()[:128] + tag + inside)
    with pytest.raises(InputError, match=reason):
        load()


FLAGS = np.array([6, 8], "<u4").tobytes()
SIZES = np.array([5, 8], "<u4").tobytes()


@pytest.mark.parametrize(
    ("tag", "place", "bit", "reason"),
    [
        (FLAGS, 9, 3, "4 elements instead of 5"),  # an imaginary part where the next one begins
        (FLAGS, 4, 3, "has no flags"),
        (SIZES, 2, 0, "has no sizes"),  # a small element now, of one byte
        (SIZES, 4, 3, "has no sizes"),  # an empty one
    ],
)
def test_a_flag_or_a_size_that_makes_scipy_crash_is_refused(write, tag, place, bit, reason):
    fields = [("labels", object), ("X", object), ("name", object)]
    places = np.array([(1.0, 2.0, "Fp1"), (0.0, 1.5, "Cz")], dtype=fields)
    path, load = write({"a": places})
    content = path.read_bytes()
    at = content.index(tag, content.index(b"labels"))  # of the first field
    damaged = bytearray(content)
    damaged[at + place] ^= 1 << bit
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=reason):
        load()


FLIP = """
import sys
import numpy as np
from pathlib import Path
from idfsmec.recordings import read_modma128
from idfsmec.errors import InputError
path, rng = Path(sys.argv[1]), np.random.default_rng(0)
whole = path.read_bytes()
refused = 0
for trial in range(200):
    damaged = bytearray(whole)
    for place in rng.integers(128, len(whole), size=1 + trial % 5):
        damaged[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(damaged)
    try:
        read_modma128(path.parent)[0].load()
    except InputError as error:
        refused += "not a readable MATLAB file" in str(error)
print(refused)
"""


@pytest.mark.parametrize("packed", [True, False])
def test_no_flipped_bit_ends_the_process(write, packed):
    """In a process of its own: a crash would end this one."""
    path, _ = write(OTHERS, do_compression=packed)  # without signals nearly every byte matters
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FLIP, str(path)],
        env={"PYTHONPATH": str(SOURCE_TREE)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0
