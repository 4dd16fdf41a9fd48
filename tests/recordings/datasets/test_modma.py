"""MODMA: files written in the layouts of the release, with its irregularities."""

import pickle

import numpy as np
import openpyxl
import pytest
from scipy.io import savemat

from idfsmec.errors import InputError
from idfsmec.recordings import channel_plan, read_modma3, read_modma128
from idfsmec.recordings.datasets.modma import VOLTS_PER_COUNT

FOLDER_3 = "EEG_3channels_resting_lanzhou_2015"
FOLDER_128 = "EEG_128channels_resting_lanzhou_2015"
HEADER = ["subject id", "type", "age", "gender", "education（years）", "PHQ-9", "CTQ-SF", "LES"]
HEADER += ["SSRS", "GAD-7", "PSQI", None, "remarks"]


def write_table(path, people):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sheet1"
    sheet.append(HEADER)
    for number, kind in people:
        sheet.append([number, kind, 30, "M", 12, 20, 50, 10, 30, 9, 11])
    sheet.cell(row=4, column=13, value="free text beside the table")
    sheet.cell(row=30, column=13, value="free text below the table")
    book.save(path)


def write_counts(path, seed=0, rows=600):
    counts = np.random.default_rng(seed).integers(1_300_000, 1_700_000, size=(rows, 3))
    path.write_bytes(b"".join(b"%d %d %d\n" % tuple(map(int, row)) for row in counts))
    return counts


@pytest.fixture
def modma3(tmp_path):
    folder = tmp_path / FOLDER_3
    folder.mkdir()
    numbers = ["02010002", "02010011", "02020008", "02030009"]
    for seed, number in enumerate(numbers):
        write_counts(folder / f"{number}_still.txt", seed, rows=500 + 10 * seed)
    write_table(
        folder / f"subjects_information_{FOLDER_3}.xlsx",
        list(zip(numbers, ["MDD", "MDD", "HC", "HC"], strict=True)),
    )
    return tmp_path


IRREGULAR_NAMES = [
    "02010002rest 20150416 1017..mat",
    "02010008_rest 20150619 1653.mat",
    "02010021 20150805 1730.mat.mat",
    "02010022restnew 20150724 14.mat",
    "02020008rest 20150701 1649..mat",
    "02030002rest 20151103 1036..mat",
]


def write_matrix(path, seed=0, n_samples=500, **extra):
    signals = np.random.default_rng(seed).normal(scale=20, size=(129, n_samples))
    signals[128] = 0
    variables = {
        f"a{path.name[:8]}rest_20150416_1017mat": signals,
        "samplingRate": 250.0,
        "Impedances_0": np.full((129, 1), 40.0),
        **extra,
    }
    with path.open("wb") as file:
        savemat(file, variables)
    return signals


@pytest.fixture
def modma128(tmp_path):
    folder = tmp_path / FOLDER_128
    folder.mkdir()
    for seed, name in enumerate(IRREGULAR_NAMES):
        extra = {"DIN_1": np.array([["DIN1"]], dtype=object)} if seed == 2 else {}
        write_matrix(folder / name, seed, **extra)
    # Ids are numbers in this table, so that the first zero is lost.
    write_table(
        folder / f"subjects_information_{FOLDER_128}.xlsx",
        [(int(name[:8]), "MDD" if name.startswith("0201") else "HC") for name in IRREGULAR_NAMES],
    )
    return tmp_path


# --- three channels -------------------------------------------------------------------


@pytest.mark.parametrize("inside", [False, True])
def test_three_channels_are_found_from_either_folder(modma3, inside):
    recordings = read_modma3(modma3 / FOLDER_3 if inside else modma3)
    assert [(r.subject, r.label) for r in recordings] == [
        ("02010002", "MDD"),
        ("02010011", "MDD"),
        ("02020008", "HC"),
        ("02030009", "HC"),
    ]


def test_three_channels_come_as_volts_with_names_and_places(modma3):
    raw = read_modma3(modma3)[1].load()
    counts = np.loadtxt(modma3 / FOLDER_3 / "02010011_still.txt")
    assert raw.ch_names == ["Fp1", "Fpz", "Fp2"]
    assert raw.info["sfreq"] == 250.0
    np.testing.assert_allclose(raw.get_data(), counts.T * VOLTS_PER_COUNT, rtol=1e-12)
    assert 0.01 < np.median(raw.get_data()) < 0.1  # an electrode's offset
    assert np.isfinite([channel["loc"][:3] for channel in raw.info["chs"]]).all()


def test_the_size_of_a_count_can_be_set(modma3):
    raw = read_modma3(modma3, unit=1e-6)[0].load()
    counts = np.loadtxt(modma3 / FOLDER_3 / "02010002_still.txt")
    np.testing.assert_allclose(raw.get_data(), counts.T * 1e-6)


def test_without_the_subject_table_the_number_tells_the_group(modma3):
    (modma3 / FOLDER_3 / f"subjects_information_{FOLDER_3}.xlsx").unlink()
    assert [r.label for r in read_modma3(modma3)] == ["MDD", "MDD", "HC", "HC"]


def test_the_subject_table_may_lie_beside_the_folder(modma3):
    name = f"subjects_information_{FOLDER_3}.xlsx"
    write_counts(modma3 / FOLDER_3 / "09990001_still.txt")
    (modma3 / FOLDER_3 / name).unlink()
    write_table(modma3 / name, [("09990001", "HC")])
    assert read_modma3(modma3)[-1].label == "HC"


def test_a_table_that_contradicts_the_number_is_refused(modma3):
    write_table(modma3 / FOLDER_3 / f"subjects_information_{FOLDER_3}.xlsx", [("02010002", "HC")])
    with pytest.raises(InputError, match=r"02010002_still\.txt: .* HC in .*xlsx, but MDD"):
        read_modma3(modma3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a table of numbers"),
        (b"1 2 3\n1 x 3\n", "not a table of numbers"),
        (b"1 2\n1 2\n", "2 columns instead of 3"),
        (b"1 2 3\n1 2 3\n1 2\n", "line 3: fewer than 3"),
        (b"1 2 3\n1 2 3 4\n", "not a table of numbers"),
        (b"\xff\xfe\x00\x01", "not a table of numbers"),
    ],
)
def test_damaged_text_files_are_named_when_loaded(modma3, content, words):
    (modma3 / FOLDER_3 / "02010002_still.txt").write_bytes(content)
    with pytest.raises(InputError, match=rf"02010002_still\.txt.*{words}"):
        read_modma3(modma3)[0].load()


# --- 128 channels ---------------------------------------------------------------------


def test_subjects_are_found_in_irregular_names_and_numbers_get_their_zero(modma128):
    recordings = read_modma128(modma128)
    assert [r.subject for r in recordings] == [name[:8] for name in IRREGULAR_NAMES]
    assert [r.label for r in recordings] == ["MDD"] * 4 + ["HC"] * 2


def test_the_matrix_is_found_whatever_it_is_called(modma128):
    for seed, recording in enumerate(read_modma128(modma128)):
        raw = recording.load()
        expected = np.random.default_rng(seed).normal(scale=20, size=(129, 500))[:128] * 1e-6
        np.testing.assert_allclose(raw.get_data(), expected)


def test_the_reference_is_dropped_and_the_net_is_attached(modma128):
    raw = read_modma128(modma128)[0].load()
    assert raw.ch_names == [f"E{number}" for number in range(1, 129)]
    assert channel_plan(raw).montage == "GSN-HydroCel-128"
    assert np.isfinite([channel["loc"][:3] for channel in raw.info["chs"]]).all()


def test_a_reference_with_a_signal_is_kept(modma128):
    path = modma128 / FOLDER_128 / IRREGULAR_NAMES[0]
    signals = np.random.default_rng(9).normal(size=(129, 300))
    with path.open("wb") as file:
        savemat(file, {"a": signals, "samplingRate": 250.0})
    raw = read_modma128(modma128)[0].load()
    assert raw.ch_names[-1] == "Cz"
    assert channel_plan(raw).montage == "GSN-HydroCel-129"


@pytest.mark.parametrize(("unit", "volts"), [("uV", 1e-6), ("nV", 1e-9), ("V", 1.0), (2e-7, 2e-7)])
def test_the_unit_can_be_set_and_is_part_of_the_fingerprint(modma128, unit, volts):
    recording = read_modma128(modma128, unit=unit)[0]
    expected = np.random.default_rng(0).normal(scale=20, size=(129, 500))[:128] * volts
    np.testing.assert_allclose(recording.load().get_data(), expected)
    same = read_modma128(modma128, unit=volts)[0]
    other = read_modma128(modma128, unit=3.0)[0]
    assert recording.fingerprint() == same.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("unit", ["mV", 0, -1e-6, float("nan")])
def test_a_unit_that_is_none_is_refused(modma128, unit):
    with pytest.raises(InputError, match="unit="):
        read_modma128(modma128, unit=unit)


def test_the_sampling_rate_of_the_file_counts(modma128):
    path = modma128 / FOLDER_128 / IRREGULAR_NAMES[0]
    write_matrix(path, samplingRate=500)
    assert read_modma128(modma128)[0].load().info["sfreq"] == 500.0


def test_a_file_without_the_matrix_or_with_two_is_named(modma128):
    path = modma128 / FOLDER_128 / IRREGULAR_NAMES[0]
    for count, variables in ((0, {"x": np.zeros((5, 5))}), (2, None)):
        both = {"x": np.ones((129, 9)), "y": np.ones((129, 8))}
        with path.open("wb") as file:
            savemat(file, variables or both)
        with pytest.raises(InputError, match=rf"one matrix with 129 rows, has {count}.*x \("):
            read_modma128(modma128)[0].load()


def test_a_damaged_matlab_file_is_named(modma128):
    path = modma128 / FOLDER_128 / IRREGULAR_NAMES[0]
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"02010002rest .*not a readable MATLAB file"):
        read_modma128(modma128)[0].load()


def test_a_file_of_matlab_7_3_is_named_with_the_way_out(modma128):
    path = modma128 / FOLDER_128 / IRREGULAR_NAMES[0]
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(header + bytes(400))
    with pytest.raises(InputError, match=r"version 7\.3.*-v7"):
        read_modma128(modma128)[0].load()


# --- both -----------------------------------------------------------------------------


def test_recordings_can_be_sent_to_worker_processes(modma3, modma128):
    for recording in (*read_modma3(modma3), *read_modma128(modma128)):
        assert pickle.loads(pickle.dumps(recording)) == recording


def test_copies_of_a_mac_are_passed_over(modma3):
    (modma3 / FOLDER_3 / "._02010002_still.txt").write_bytes(b"\x00\x05")
    assert len(read_modma3(modma3)) == 4


def test_a_name_without_a_number_is_refused(modma128):
    write_matrix(modma128 / FOLDER_128 / "notes.mat")
    with pytest.raises(InputError, match=r"notes\.mat: .*eight digits"):
        read_modma128(modma128)


def test_an_unknown_group_is_refused(modma3):
    write_counts(modma3 / FOLDER_3 / "09990001_still.txt")
    with pytest.raises(InputError, match="09990001 is not in the participant table"):
        read_modma3(modma3)


def test_a_folder_without_recordings_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no recording \*_still\.txt"):
        read_modma3(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_modma128(tmp_path / "gone")


def test_a_subject_table_with_other_columns_or_groups_is_refused(modma3):
    path = modma3 / FOLDER_3 / f"subjects_information_{FOLDER_3}.xlsx"
    write_table(path, [("02010002", "BD")])
    with pytest.raises(InputError, match="row 2, column 'type': 'BD'"):
        read_modma3(modma3)
    book = openpyxl.Workbook()
    book.active.append(["id", "group"])
    book.save(path)
    with pytest.raises(InputError, match="'subject id' is missing; found: id, group"):
        read_modma3(modma3)
    path.write_bytes(b"not a workbook")
    with pytest.raises(InputError, match="not a readable table of participants"):
        read_modma3(modma3)


def test_what_the_subject_table_says_else_goes_along(modma3):
    details = read_modma3(modma3)[0].details
    assert (details["age"], details["gender"], details["education(years)"]) == ("30", "M", "12")
    assert "type" not in details
