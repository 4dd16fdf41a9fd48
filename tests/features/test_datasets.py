"""The command on MODMA-128 and on both releases of PRED+CT d003, written as they are released."""

import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.features import FeatureSettings, extract_table
from idfsmec.recordings import find_recordings, simulate_cohort
from idfsmec.table import FeatureTable
from tests.corpus.sound import book_bytes, mat_bytes

pytestmark = pytest.mark.slow

MODMA128 = "EEG_128channels_resting_lanzhou_2015"
# fmt: off
CAP = [
    "FP1", "FPZ", "FP2", "AF3", "AF4", "F7", "F5", "F3", "F1", "FZ", "F2", "F4", "F6", "F8",
    "FT7", "FC5", "FC3", "FC1", "FCZ", "FC2", "FC4", "FC6", "FT8", "T7", "C5", "C3", "C1", "CZ",
    "C2", "C4", "C6", "T8", "M1", "TP7", "CP5", "CP3", "CP1", "CPZ", "CP2", "CP4", "CP6", "TP8",
    "M2", "P7", "P5", "P3", "P1", "PZ", "P2", "P4", "P6", "P8", "PO7", "PO5", "PO3", "POZ", "PO4",
    "PO6", "PO8", "CB1", "O1", "OZ", "O2", "CB2",
]
# fmt: on
PRED_RATE = 500.0
PRED_SECONDS = 22
# number, BDI, interview as PRED+CT and as ds003478 write it
PEOPLE = [
    (507, 0, 99, "No Interview"),
    (508, 12, 99, "No Interview"),
    (510, 13, 1, "Current MDD"),
    (512, 30, 50, "Do not meet criterion for current or past MDD"),
    (544, None, 99, "No Interview"),
]


def run(*arguments):
    result = CliRunner().invoke(app, ["features", *map(str, arguments)])
    return result.exit_code, " ".join(result.stdout.split()), " ".join(result.stderr.split())


@pytest.fixture
def output(tmp_path):
    return tmp_path / "table.parquet"


# --- MODMA, 128 channels -----------------------------------------------------------------

# Name of the file, name of the matrix in it.
IRREGULAR = {
    "02010002rest 20150416 1017..mat": "a02010002rest_20150416_1017mat",
    "02010008_rest 20150619 1653.mat": "a02010008_rest_20150619_1653mat",
    "02010021 20150805 1730.mat.mat": "a02010021_20150805_1730mat",
    "02020008rest 20150701 1649..mat": "a02020008rest_20150701_1649mat",
    "02030002rest 20151103 1036..mat": "a02030002rest_20151103_1036mat",
}


def net_signals(seed, seconds):
    """Microvolts of the 128 sensors and, as released, a row of zeros for the reference."""
    cohort = simulate_cohort(
        1, 128, duration=seconds, detached=0, artifacts=False, random_state=seed
    )
    return np.vstack([cohort.recordings[0].load().get_data() * 1e6, np.zeros(seconds * 250)])


@pytest.fixture(scope="module")
def modma128(tmp_path_factory):
    root = tmp_path_factory.mktemp("modma128")
    folder = root / MODMA128
    folder.mkdir()
    for seed, (name, matrix) in enumerate(IRREGULAR.items()):
        signals = net_signals(seed, seconds=22 + 10 * (seed % 2))  # lengths differ
        if name.startswith("02020008"):
            signals[16] = 0  # E17 came off
        variables = {matrix: signals, "samplingRate": 250.0, "Impedances_0": np.ones((129, 1))}
        if seed == 2:
            variables["DIN_1"] = np.array([["DIN1"]], dtype=object)
        (folder / name).write_bytes(mat_bytes(variables))
    header = ["subject id", "type", "age", "gender", "education（years）", "PHQ-9", "CTQ-SF"]
    header += ["LES", "SSRS", "GAD-7", "PSQI", None, "remarks"]
    people = [(int(name[:8]), "MDD" if name[3] == "1" else "HC") for name in IRREGULAR]
    rows = [[number, kind, 30, "M", 12, 20, 50, 10, 30, 9, 11] for number, kind in people]
    table = folder / f"subjects_information_{MODMA128}.xlsx"
    table.write_bytes(book_bytes([header, *rows]))
    return root


def test_modma128_goes_in_by_name(modma128, output):
    code, said, errors = run("modma128", "--data", modma128, "-o", output)
    assert code == 0, errors
    table = FeatureTable.read(output)
    epochs = {"02010002": 2, "02010008": 3, "02010021": 2, "02020008": 3, "02030002": 2}
    assert table.subjects.value_counts().to_dict() == epochs
    labels = dict(zip(table.subjects, table.y, strict=True))
    assert labels == {who: "MDD" if who[3] == "1" else "HC" for who in epochs}
    assert table.channels == [f"E{number}" for number in range(1, 129)]
    assert table.info["montage"] == "GSN-HydroCel-128"
    # The sensor that came off, in the three epochs of its recording, and nothing else.
    gone = ~table.observed
    assert gone["E17"].tolist() == (table.subjects == "02020008").tolist()
    assert gone.to_numpy().sum() == 3
    assert f"missing {3 / (12 * 128):.1%} of channel epochs" in said
    assert "labels HC (2 participants, 5 epochs), MDD (3 participants, 7 epochs)" in said


def test_the_unit_of_modma128_can_be_set(modma128, tmp_path):
    folder = tmp_path / MODMA128
    folder.mkdir()
    for name in (next(iter(IRREGULAR)), f"subjects_information_{MODMA128}.xlsx"):
        shutil.copy(modma128 / MODMA128 / name, folder)
    values, settings = {}, FeatureSettings(detect=False, features=["variance"])
    for unit in ("uV", "nV"):
        recordings = find_recordings("modma128", data=tmp_path, unit=unit)
        values[unit] = extract_table(recordings, settings).table.X
    np.testing.assert_allclose(values["nV"] * 1e6, values["uV"], rtol=1e-9)


# --- PRED+CT d003, both releases ---------------------------------------------------------


def cap_names(number):
    """The 64 channels of the cap, the eyes and, in some recordings, the heart."""
    return [*CAP, "HEOG", "VEOG", *(["EKG"] if number % 2 else [])]


def cap_signals(number):
    """Microvolts as float32: every channel its own noise and what all share."""
    rng = np.random.default_rng(number)
    shape = (len(cap_names(number)), int(PRED_RATE * PRED_SECONDS))
    signals = rng.normal(scale=8, size=shape) + rng.normal(scale=8, size=shape[1])
    if number == 512:
        signals[CAP.index("PO7")] = 0
    return signals.astype(np.float32)


def triggers():
    """Seconds and type, of both kinds: eyes open up to 11 s, then closed."""
    opened = [(1 + step, 2) for step in range(10)] + [(1.02 + 2 * step, 12) for step in range(5)]
    closed = [(11 + step, 1) for step in range(10)] + [(11.02 + 2 * step, 11) for step in range(5)]
    return sorted([(0.016, "keyboard0"), (0.9, 17), *opened, *closed, (21.5, 17)])


def structure(number, data):
    names = cap_names(number)
    kinds = [("type", object), ("latency", object), ("duration", object)]
    n_times = int(PRED_RATE * PRED_SECONDS)
    return {
        "setname": f"{number}_Depression_REST",
        "data": data,
        "srate": PRED_RATE,
        "nbchan": len(names),
        "pnts": n_times,
        "trials": 1,
        "xmin": 0.0,
        "xmax": (n_times - 1) / PRED_RATE,
        "chanlocs": np.array([(n, 0.0) for n in names], dtype=[("labels", object), ("X", object)]),
        "event": np.array([(k, s * PRED_RATE + 1, 0.0) for s, k in triggers()], dtype=kinds),
    }


def write_pred_ct(root):
    folder = root / "Depression Rest" / "Matlab Files"
    folder.mkdir(parents=True)
    header = ["id", "MDD", "MDD_note", "HamD", "sex", "age", "BDI", "BDI_Anh", "BDI_Mel", "TAI"]
    rows = [header]
    for number, bdi, mdd, _ in PEOPLE:
        content = mat_bytes({"EEG": structure(number, cap_signals(number))})
        (folder / f"{number}_Depression_REST.mat").write_bytes(content)
        rows.append([number, mdd, None, None, 1, 19, "NaN" if bdi is None else bdi, 1, 1, 40])
    sheet = book_bytes(rows, "Depression Rest")
    (root / "Depression Rest" / "Data_4_Import_REST.xlsx").write_bytes(sheet)


def write_openneuro(root):
    root.mkdir()
    (root / "dataset_description.json").write_text('{"Name": "x", "BIDSVersion": "1.1.1"}')
    lines = ["participant_id\tOriginal_ID\tsex\tage\tBDI\tSTAI\tSCID\tSCID_notes\tHamD"]
    for index, (number, bdi, _, interview) in enumerate(PEOPLE, start=1):
        score = "NaN" if bdi is None else bdi
        lines.append(f"sub-{index:03}\t{number}\t1\t19\t{score}\t40\t{interview}\tn/a\tNaN")
        for number_of_run in (1, 2):
            write_run(root, f"sub-{index:03}", number, number_of_run)
    (root / "participants.tsv").write_text("\n".join(lines) + "\n")


def write_run(root, subject, number, number_of_run):
    folder = root / subject / "eeg"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{subject}_task-Rest_run-0{number_of_run}"
    struct = structure(number, f"{stem}_eeg.fdt")
    (folder / f"{stem}_eeg.set").write_bytes(mat_bytes({"EEG": struct}))
    signals = cap_signals(number) * np.float32(number_of_run)
    (folder / f"{stem}_eeg.fdt").write_bytes(signals.T.tobytes())
    names = cap_names(number)
    write_tsv(folder / f"{stem}_channels.tsv", ["name", "type", "units"], names, "n/a", "n/a")
    write_tsv(folder / f"{stem}_electrodes.tsv", ["name", "x", "y", "z"], names, 80.78, 26.13, -4)
    onsets = [f"{seconds:.10f}" for seconds, _ in triggers()]
    write_tsv(folder / f"{stem}_events.tsv", ["onset", "duration", "value"], onsets, "n/a", 17)
    about = '{"TaskName": "Rest", "SamplingFrequency": 500, "PowerLineFrequency": 60}'
    (folder / f"{stem}_eeg.json").write_text(about)


def write_tsv(path, header, first, *rest):
    lines = ["\t".join(header), *("\t".join(map(str, [one, *rest])) for one in first)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Both releases, which tests only read."""
    root = tmp_path_factory.mktemp("pred")
    write_pred_ct(root / "mat")
    write_openneuro(root / "bids")
    return root


@pytest.fixture(params=["mat", "bids"])
def pred(request, releases):
    return releases / request.param


def test_both_releases_of_pred_go_in_by_name(pred, output):
    code, said, errors = run("pred-d003", "--data", pred, "-o", output)
    assert code == 0, errors
    table = FeatureTable.read(output)
    labels = dict(zip(table.subjects, table.y, strict=True))
    assert labels == {  # 544 has no score
        "507": "control",
        "508": "control",
        "510": "depressed",
        "512": "depressed",
    }
    assert table.subjects.value_counts().tolist() == [2, 2, 2, 2]
    # Neither eyes nor heart nor mastoids; names as in 10-05, the cerebellar ones as they are.
    assert len(table.channels) == 62
    assert {"Fp1", "FCz", "POz", "CB1", "CB2"} <= set(table.channels)
    assert not {"M1", "M2", "HEOG", "VEOG", "EKG", "FP1"} & set(table.channels)
    gone = ~table.observed
    assert gone["PO7"].tolist() == (table.subjects == "512").tolist()
    assert gone.to_numpy().sum() == 2
    assert f"missing {2 / (8 * 62):.1%} of channel epochs" in said


def test_rule_and_condition_of_pred_reach_the_table(pred, output):
    code, _, errors = run(
        *("pred-d003", "--data", pred, "-o", output, "--epoch", 4),
        *("--labels", "scid", "--condition", "eyes-closed"),
    )
    assert code == 0, errors
    table = FeatureTable.read(output)
    labels = dict(zip(table.subjects, table.y, strict=True))
    assert labels == {"507": "control", "510": "depressed"}
    assert {about["condition"] for about in table.info["recordings"]} == {"eyes-closed"}
    assert table.subjects.value_counts().tolist() == [2, 2]


def test_the_two_releases_of_one_recording_give_the_same_numbers(releases):
    settings = FeatureSettings(features="paper")
    mat, bids = (
        extract_table(find_recordings("pred-d003", data=releases / name)[:2], settings).table.X
        for name in ("mat", "bids")
    )
    np.testing.assert_allclose(mat, bids[mat.columns], rtol=1e-6, atol=1e-6)


def test_ds003478_without_its_recordings_is_refused_with_the_way_out(tmp_path, output):
    write_openneuro(tmp_path / "tree")
    for path in (tmp_path / "tree").rglob("*_eeg.set"):
        path.unlink()
        path.symlink_to("../../.git/annex/objects/nothing")  # a clone before `datalad get`
    code, _, errors = run("pred-d003", "--data", tmp_path / "tree", "-o", output)
    assert code == 2
    assert "lists 5 participants, but the recordings are not there" in errors
    assert "datalad get" in errors


def test_subjects_of_ds003478_without_a_recording_are_named(tmp_path, output):
    write_openneuro(tmp_path / "tree")
    for path in (tmp_path / "tree" / "sub-003").rglob("*_eeg.set"):
        path.unlink()
    code, _, errors = run("pred-d003", "--data", tmp_path / "tree", "-o", output)
    assert code == 0
    assert "participants left out: 1 without a recording (510)" in errors
    assert set(FeatureTable.read(output).subjects) == {"507", "508", "512"}
