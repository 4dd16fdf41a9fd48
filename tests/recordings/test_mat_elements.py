"""Damaged MATLAB files end in an error; scipy alone would take the process down with it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from idfsmec.errors import InputError
from idfsmec.recordings._mat_elements import DamagedMatError, check_elements
from idfsmec.recordings._matlab import load_mat

SOURCE_TREE = Path(__file__).parents[2] / "src"
VARIABLES = {
    "signals": np.arange(600, dtype=np.float32).reshape(6, 100),
    "EEG": {"labels": np.array(["Fp1", "Cz"], dtype=object), "nested": {"rate": 250.0}},
    "text": "free text",
    "mask": np.array([[True, False]]),
    "nothing": np.zeros((0, 3)),
    "waves": np.array([[1 + 2j]]),
}


@pytest.fixture(params=[True, False], ids=["compressed", "plain"])
def sound(request, tmp_path):
    path = tmp_path / "sound.mat"
    savemat(path, VARIABLES, do_compression=request.param)
    return path


def test_sound_files_pass(sound):
    check_elements(sound)
    np.testing.assert_array_equal(load_mat(sound)["signals"], VARIABLES["signals"])


def test_files_of_version_4_are_left_to_scipy(tmp_path):
    savemat(tmp_path / "old.mat", {"a": np.eye(3)}, format="4")
    np.testing.assert_array_equal(load_mat(tmp_path / "old.mat")["a"], np.eye(3))


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_a_cut_file_is_refused(sound, kept):
    sound.write_bytes(sound.read_bytes()[: int(sound.stat().st_size * kept)])
    with pytest.raises(InputError, match=r"sound\.mat"):
        load_mat(sound)


def test_the_type_that_makes_scipy_crash_is_refused(tmp_path):
    path = tmp_path / "crash.mat"
    savemat(path, {"a": np.zeros((2, 50), np.float32)})
    content = bytearray(path.read_bytes())
    assert content[176:180] == b"\x07\0\0\0"  # the type of the signals: single precision
    content[177] = 2  # 519 is no type; scipy takes it as an index into a table of twenty
    path.write_bytes(content)
    with pytest.raises(DamagedMatError, match="kind 519"):
        check_elements(path)


def test_cells_nested_without_end_are_refused(tmp_path):
    nested = np.array(1.0)
    for _ in range(100):
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = nested
        nested = cell
    savemat(tmp_path / "deep.mat", {"a": nested})
    with pytest.raises(DamagedMatError, match="nested"):
        check_elements(tmp_path / "deep.mat")


FLIP = """
import sys
import numpy as np
from pathlib import Path
from idfsmec.recordings._matlab import load_mat
from idfsmec.errors import InputError
path, rng = Path(sys.argv[1]), np.random.default_rng(0)
whole = path.read_bytes()
refused = 0
for trial in range(400):
    damaged = bytearray(whole)
    for place in rng.integers(len(whole), size=1 + trial % 5):
        damaged[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(damaged)
    try:
        load_mat(path)
    except InputError:
        refused += 1
print(refused)
"""


def test_no_flipped_bit_ends_the_process(sound):
    """In a process of its own: a crash would end this one."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FLIP, str(sound)],
        env={"PYTHONPATH": str(SOURCE_TREE)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0
