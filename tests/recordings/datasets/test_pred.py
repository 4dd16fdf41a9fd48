"""PRED+CT d003: both releases, written in their layouts, with their irregularities."""

import pickle
import shutil

import numpy as np
import openpyxl
import pytest
from scipy.io import savemat

from idfsmec.errors import InputError
from idfsmec.recordings import channel_plan, find_duplicates, find_recordings, read_pred_d003
from idfsmec.recordings.datasets.pred import LABEL_RULES

# fmt: off
EEG = [
    "FP1", "FPZ", "FP2", "AF3", "AF4", "F7", "F5", "F3", "F1", "FZ", "F2", "F4", "F6", "F8",
    "FT7", "FC5", "FC3", "FC1", "FCZ", "FC2", "FC4", "FC6", "FT8", "T7", "C5", "C3", "C1", "CZ",
    "C2", "C4", "C6", "T8", "M1", "TP7", "CP5", "CP3", "CP1", "CPZ", "CP2", "CP4", "CP6", "TP8",
    "M2", "P7", "P5", "P3", "P1", "PZ", "P2", "P4", "P6", "P8", "PO7", "PO5", "PO3", "POZ", "PO4",
    "PO6", "PO8", "CB1", "O1", "OZ", "O2", "CB2",
]
# fmt: on
SFREQ = 500.0

# number, BDI, outcome of the interview, how ds003478 writes the latter
PEOPLE = [
    (507, 0, 99, "No Interview"),
    (508, 7, 99, "No Interview"),
    (509, 8, 99, "No Interview"),
    (510, 13, 1, "Current MDD"),
    (511, 14, 2, "Past MDD"),
    (512, 30, 50, "Do not meet criterion for current or past MDD"),
    (513, 22, 99, "No Interview"),
    (544, None, 99, "No Interview"),
]


def events():
    """Triggers of 4 s eyes open, 4 s eyes closed, 4 s eyes open: (seconds, type)."""
    found = [(0.016, "keyboard0"), (0.9, 17)]
    for start, half, two in ((1.0, 2, 12), (6.0, 1, 11), (11.0, 4, 14)):
        found += [(start + step / 2, half) for step in range(8)]
        found += [(start + 0.05 + 2 * step, two) for step in range(2)]
    return sorted([*found, (15.5, 17), (15.7, "boundary")])


def names_of(number):
    return [*EEG, "HEOG", "VEOG", *(["EKG"] if number % 2 else [])]


def signals_of(number):
    """Microvolts, eyes open and closed at different levels so that cuts can be checked."""
    rng = np.random.default_rng(number)
    signals = rng.normal(scale=10, size=(len(names_of(number)), int(16 * SFREQ)))
    signals[:, int(5.5 * SFREQ) : int(10.5 * SFREQ)] += 1000
    return signals.astype(np.float32)


def eeglab_struct(number, data):
    """Make the structure that EEGLAB keeps a recording in, with types of both kinds."""
    names = names_of(number)
    chanlocs = np.array([(name, 0.0) for name in names], dtype=[("labels", object), ("X", object)])
    event = np.array(
        [(kind, seconds * SFREQ + 1, 0.0) for seconds, kind in events()],
        dtype=[("type", object), ("latency", object), ("duration", object)],
    )
    return {
        "setname": str(number),
        "data": data,
        "srate": SFREQ,
        "nbchan": len(names),
        "pnts": int(16 * SFREQ),
        "trials": 1,
        "xmin": 0.0,
        "xmax": 16 - 1 / SFREQ,
        "chanlocs": chanlocs,
        "event": event,
    }


def write_pred_ct(root):
    folder = root / "Depression Rest" / "Matlab Files"
    folder.mkdir(parents=True)
    for number, *_ in PEOPLE:
        struct = eeglab_struct(number, signals_of(number))
        savemat(folder / f"{number}_Depression_REST.mat", {"EEG": struct})
    book = openpyxl.Workbook()
    book.active.title = "Key"
    sheet = book.create_sheet("Depression Rest")
    sheet.append(
        ["id", "MDD", "MDD_note", "HamD", "sex", "age", "BDI", "BDI_Anh", "BDI_Mel", "TAI"]
    )
    for number, bdi, mdd, _ in PEOPLE:
        sheet.append([number, mdd, None, None, 1, 19, "NaN" if bdi is None else bdi, 1, 1, 40])
    book.save(root / "Depression Rest" / "Data_4_Import_REST.xlsx")


def write_openneuro(root):
    lines = ["participant_id\tOriginal_ID\tsex\tage\tBDI\tSTAI\tSCID\tSCID_notes\tHamD"]
    for index, (number, bdi, _, scid) in enumerate(PEOPLE, start=1):
        score = "NaN" if bdi is None else bdi
        lines.append(f"sub-{index:03}\t{number}\t1\t19\t{score}\t40\t{scid}\tn/a\tNaN")
        folder = root / f"sub-{index:03}" / "eeg"
        folder.mkdir(parents=True)
        for run in (1, 2) if number != 508 else (1,):
            stem = f"sub-{index:03}_task-Rest_run-0{run}_eeg"
            struct = eeglab_struct(number, f"{stem}.fdt")
            with (folder / f"{stem}.set").open("wb") as file:
                savemat(file, {"EEG": struct})
            signals_of(number).T.tofile(folder / f"{stem}.fdt")
    (root / "participants.tsv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write both releases once; every test gets copies."""
    root = tmp_path_factory.mktemp("releases")
    write_pred_ct(root / "pred_ct")
    write_openneuro(root / "openneuro")
    return root


@pytest.fixture
def pred_ct(written, tmp_path):
    return shutil.copytree(written / "pred_ct", tmp_path / "pred_ct")


@pytest.fixture
def openneuro(written, tmp_path):
    return shutil.copytree(written / "openneuro", tmp_path / "openneuro")


@pytest.fixture(params=["pred_ct", "openneuro"])
def release(request):
    return request.getfixturevalue(request.param)


# --- labels ---------------------------------------------------------------------------

DEPRESSED_AND_CONTROLS = {
    "bdi13": ({"510", "511", "512", "513"}, {"507", "508", "509"}),
    "bdi-above-13": ({"511", "512", "513"}, {"507", "508", "509", "510"}),
    "bdi-extremes": ({"511", "512", "513"}, {"507", "508"}),
    "scid": ({"510"}, {"507", "508"}),
    "scid-lifetime": ({"510", "511"}, {"507", "508"}),
}


def test_every_rule_is_tested():
    assert DEPRESSED_AND_CONTROLS.keys() == LABEL_RULES.keys()


def test_the_rules_mean_the_same_in_both_releases(release):
    for rule, (depressed, controls) in DEPRESSED_AND_CONTROLS.items():
        recordings = read_pred_d003(release, labels=rule)
        assert {r.subject for r in recordings if r.label == "depressed"} == depressed
        assert {r.subject for r in recordings if r.label == "control"} == controls
        assert {r.label for r in recordings} == {"depressed", "control"}


@pytest.mark.parametrize("rule", LABEL_RULES)
def test_nobody_without_a_score_gets_a_label(openneuro, rule):
    assert "544" not in {r.subject for r in read_pred_d003(openneuro, labels=rule)}


def test_an_unknown_rule_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r"'bdi9'.*bdi13, bdi-above-13, .*scid"):
        read_pred_d003(tmp_path, labels="bdi9")


# --- signals --------------------------------------------------------------------------


def test_signals_come_in_volts_without_eyes_heart_and_mastoids(release):
    for recording in read_pred_d003(release)[:2]:
        number = int(recording.subject)
        raw = recording.load()
        names = names_of(number)
        kept = [names.index(name) for name in EEG if name not in ("M1", "M2")]
        np.testing.assert_allclose(raw.get_data(), signals_of(number)[kept] * 1e-6, rtol=1e-5)
        assert len(raw.ch_names) == 62
        assert raw.ch_names[:2] == ["Fp1", "Fpz"]
        assert channel_plan(raw).dropped.keys() == {"M1", "M2", *names[64:]}
        assert raw.info["sfreq"] == 500.0


def test_cb1_and_cb2_stay_without_a_place(release):
    raw = read_pred_d003(release)[0].load()
    nowhere = [c["ch_name"] for c in raw.info["chs"] if np.isnan(c["loc"][:3]).any()]
    assert nowhere == ["CB1", "CB2"]


def test_the_whole_recording_is_kept_by_default(release):
    recording = read_pred_d003(release)[0]
    assert recording.condition is None
    assert recording.load().n_times == 16 * SFREQ


@pytest.mark.parametrize(
    ("condition", "seconds", "level"), [("eyes-open", 8, 0.0), ("eyes-closed", 4, 1e-3)]
)
def test_a_condition_is_cut_out_by_its_triggers(release, condition, seconds, level):
    recording = read_pred_d003(release, condition=condition)[0]
    raw = recording.load()
    assert recording.condition == condition
    assert raw.times[-1] == pytest.approx(seconds, abs=0.01)
    np.testing.assert_allclose(raw.get_data().mean(axis=1), level, atol=2e-6)
    joints = [text for text in raw.annotations.description if text == "BAD boundary"]
    assert len(joints) == (1 if condition == "eyes-open" else 0)


def test_the_two_conditions_of_one_file_are_no_duplicates(release):
    both = [r for c in ("eyes-open", "eyes-closed") for r in read_pred_d003(release, condition=c)]
    assert find_duplicates(both) == []


def test_an_unknown_condition_is_refused(release):
    with pytest.raises(InputError, match=r"condition='open'.*eyes-open, eyes-closed"):
        read_pred_d003(release, condition="open")


def test_the_signal_file_belongs_to_the_recording(openneuro):
    assert [path.suffix for path in read_pred_d003(openneuro)[0].files] == [".set", ".fdt"]


def test_recordings_can_be_sent_to_worker_processes(release):
    recording = read_pred_d003(release, condition="eyes-open")[0]
    assert pickle.loads(pickle.dumps(recording)) == recording


def test_only_the_first_run_is_read(openneuro):
    assert {r.session for r in read_pred_d003(openneuro)} == {"run-1"}


@pytest.mark.parametrize("inside", ["", "Depression Rest", "Depression Rest/Matlab Files"])
def test_the_matlab_release_is_found_from_any_of_its_folders(pred_ct, inside):
    assert len(read_pred_d003(pred_ct / inside)) == 7


# --- mistakes -------------------------------------------------------------------------


def test_a_folder_with_neither_release_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"neither ds003478 .*nor the PRED\+CT release"):
        read_pred_d003(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_pred_d003(tmp_path / "gone")


def test_the_missing_table_of_subjects_is_named(pred_ct):
    (pred_ct / "Depression Rest" / "Data_4_Import_REST.xlsx").unlink()
    with pytest.raises(InputError, match=r"Data_4_Import_REST\.xlsx, is missing"):
        read_pred_d003(pred_ct)


def test_a_recording_of_somebody_unknown_is_refused(pred_ct, openneuro):
    folder = pred_ct / "Depression Rest" / "Matlab Files"
    (folder / "507_Depression_REST.mat").rename(folder / "700_Depression_REST.mat")
    with pytest.raises(InputError, match=r"700_Depression_REST\.mat: participant 700 is not in"):
        read_pred_d003(pred_ct / "Depression Rest")
    table = openneuro / "participants.tsv"
    table.write_text(table.read_text().replace("sub-001", "sub-999"))
    with pytest.raises(InputError, match=r"sub-001_.*participant sub-001 is not in"):
        read_pred_d003(openneuro)
    table.write_text(table.read_text().replace("BDI", "XXX"))
    with pytest.raises(InputError, match="'BDI' is missing"):
        read_pred_d003(openneuro)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"x": 1}, "no EEGLAB structure 'EEG'"),
        ({"EEG": {"data": np.zeros((2, 9)), "srate": 500.0}}, "field 'chanlocs'"),
        (
            {"EEG": {"data": np.zeros((2, 9)), "srate": 500.0, "chanlocs": {"labels": "CZ"}}},
            r"1 channel names for signals of shape \(2, 9\)",
        ),
    ],
)
def test_a_matlab_file_of_another_kind_is_named(pred_ct, variables, words):
    path = pred_ct / "Depression Rest" / "Matlab Files" / "507_Depression_REST.mat"
    savemat(path, variables)
    with pytest.raises(InputError, match=rf"507_Depression_REST\.mat: .*{words}"):
        read_pred_d003(pred_ct)[0].load()


def test_a_recording_without_triggers_is_named(pred_ct):
    path = pred_ct / "Depression Rest" / "Matlab Files" / "507_Depression_REST.mat"
    chanlocs = np.array([("CZ",), ("PZ",)], dtype=[("labels", object)])
    savemat(path, {"EEG": {"data": np.zeros((2, 900)), "srate": 500.0, "chanlocs": chanlocs}})
    assert read_pred_d003(pred_ct)[0].load().ch_names == ["Cz", "Pz"]
    with pytest.raises(InputError, match=r"507_.*no trigger of condition 'eyes-open'"):
        read_pred_d003(pred_ct, condition="eyes-open")[0].load()


# --- when a condition begins and ends ---------------------------------------------------


@pytest.fixture
def kept(pred_ct):
    """Say which samples a condition keeps, from triggers: seconds and types."""

    def keep(condition, onsets, kinds):
        path = pred_ct / "Depression Rest" / "Matlab Files" / "507_Depression_REST.mat"
        samples = np.arange(200.0 * 10)  # a signal that tells the time, at 10 Hz
        fields = [("type", object), ("latency", object)]
        triggers = [(kind, 10 * onset + 1) for onset, kind in zip(onsets, kinds, strict=True)]
        eeg = {
            "data": np.stack([samples, samples]),
            "srate": 10.0,
            "chanlocs": np.array([("CZ",), ("PZ",)], dtype=[("labels", object)]),
            "event": np.array(triggers, dtype=fields),
        }
        savemat(path, {"EEG": eeg})
        raw = read_pred_d003(pred_ct, condition=condition)[0].load()
        return np.round(raw.get_data()[0] * 1e6).astype(int)

    return keep


def test_a_pause_of_the_triggers_ends_a_stretch(kept):
    samples = kept("eyes-open", [0.0, 0.5, 1.0, 10.0, 10.5], [2] * 5)
    assert samples.tolist() == [*range(15), *range(100, 110)]


def test_a_boundary_or_the_other_condition_ends_a_stretch(kept):
    samples = kept("eyes-open", [0.0, 0.5, 0.9, 1.5, 2.0], [2, 2, "boundary", 2, 2])
    assert samples.tolist() == [*range(9), *range(15, 25)]
    samples = kept("eyes-open", [0.0, 0.5, 0.8, 1.5, 2.0], [2, 2, 1, 2, 2])
    assert samples.tolist() == [*range(8), *range(15, 25)]


def test_no_sample_is_kept_twice_or_for_both_conditions(kept):
    rng = np.random.default_rng(0)
    onsets = np.round(np.cumsum(rng.uniform(0.4, 4, size=60)), 1)
    kinds = rng.choice([1, 2, 2, 12, 17], size=60).tolist()
    opened, closed = (kept(condition, onsets, kinds) for condition in ("eyes-open", "eyes-closed"))
    assert len(opened) > 100
    assert len(closed) > 0
    together = np.concatenate([opened, closed])
    assert len(np.unique(together)) == len(together)


def test_several_conditions_give_a_recording_each(release):
    found = find_recordings("pred-d003", data=release, condition=["eyes-open", "eyes-closed"])
    one = find_recordings("pred-d003", data=release)
    assert len(found) == 2 * len(one)
    assert {recording.condition for recording in found} == {"eyes-open", "eyes-closed"}


def test_age_and_sex_go_along(release):
    details = read_pred_d003(release)[0].details
    assert (details["age"], details["sex"]) == ("19", "1")
