"""Trees in the layouts of the paper's data sets, with few short recordings of two groups."""

import numpy as np
import openpyxl
from scipy.io import savemat

SECONDS = 20
FOLDER_3 = "EEG_3channels_resting_lanzhou_2015"
FOLDER_128 = "EEG_128channels_resting_lanzhou_2015"
# fmt: off
PRED_CHANNELS = [
    "FP1", "FPZ", "FP2", "AF3", "AF4", "F7", "F5", "F3", "F1", "FZ", "F2", "F4", "F6", "F8",
    "FT7", "FC5", "FC3", "FC1", "FCZ", "FC2", "FC4", "FC6", "FT8", "T7", "C5", "C3", "C1", "CZ",
    "C2", "C4", "C6", "T8", "M1", "TP7", "CP5", "CP3", "CP1", "CPZ", "CP2", "CP4", "CP6", "TP8",
    "M2", "P7", "P5", "P3", "P1", "PZ", "P2", "P4", "P6", "P8", "PO7", "PO5", "PO3", "POZ", "PO4",
    "PO6", "PO8", "CB1", "O1", "OZ", "O2", "CB2",
]
# fmt: on


def signals(n_channels, sfreq, person, depressed):
    """Microvolts: drifting noise, and an alpha rhythm that is stronger in one group."""
    rng = np.random.default_rng(person)
    n_samples = int(SECONDS * sfreq)
    noise = rng.normal(size=(n_channels, n_samples))
    drift = np.cumsum(noise, axis=1)
    drift -= drift.mean(axis=1, keepdims=True)
    alpha = np.sin(2 * np.pi * (10 * np.arange(n_samples) / sfreq + rng.random()))
    own = rng.normal(1, 0.1, size=(n_channels, 1))
    return 0.2 * drift + 8 * rng.normal(size=noise.shape) + (4 + 6 * depressed) * own * alpha


#: Root mean squares in counts, by band in Hz, of a recording of MODMA with three channels.
MODMA3_SPECTRUM = {(1, 4): 970, (4, 8): 210, (8, 13): 135, (13, 30): 170, (30, 45): 85}
MODMA3_MAINS = 6600


def modma3_counts(person, depressed=False, seconds=SECONDS):
    """Counts of three channels with the spectrum of the release: far more mains than EEG."""
    rng = np.random.default_rng(person)
    n_samples = int(seconds * 250)
    frequencies = np.fft.rfftfreq(n_samples, 1 / 250)
    # What all three share, and a little of their own.
    noise = np.fft.rfft(rng.normal(size=(1, n_samples)) + 0.4 * rng.normal(size=(3, n_samples)))
    counts = np.zeros((3, n_samples))
    for (low, high), rms in MODMA3_SPECTRUM.items():
        inside = (frequencies >= low) & (frequencies < high)
        part = np.fft.irfft(noise * inside, n_samples)
        louder = 1.6 if depressed and low == 8 else 1.0
        counts += louder * rms * part / part.std(axis=1, keepdims=True)
    time = np.arange(n_samples) / 250
    swell = 1 + 0.05 * np.sin(2 * np.pi * time / 40 + rng.random())
    hum = np.sin(2 * np.pi * (50 + rng.normal(scale=0.02)) * time + rng.random())
    counts += np.sqrt(2) * MODMA3_MAINS * swell * hum * rng.normal(1, 0.02, size=(3, 1))
    return (counts + rng.uniform(1.3e6, 1.7e6, size=(3, 1))).T.round().astype(int)


def write_modma3(root, n_people=12):
    folder = root / FOLDER_3
    folder.mkdir(parents=True)
    people = _modma_people(n_people)
    for person, (number, kind) in enumerate(people):
        counts = modma3_counts(person, kind == "MDD")
        np.savetxt(folder / f"{number}_still.txt", counts, fmt="%d", delimiter=" ")
    _write_subjects(folder, FOLDER_3, people)
    return root


def write_modma128(root, n_people=8):
    folder = root / FOLDER_128
    folder.mkdir(parents=True)
    endings = ["rest 20150416 1017..mat", "_rest 20150619 1653.mat", " 20150805 1730.mat.mat"]
    people = _modma_people(n_people)
    for person, (number, kind) in enumerate(people):
        whole = np.zeros((129, 250 * SECONDS))  # the last row is the reference
        whole[:128] = signals(128, 250, person, kind == "MDD")
        path = folder / (number + endings[person % 3])
        variables = {
            f"a{number}rest_20150416_1017mat": whole,
            "samplingRate": 250.0,
            "Impedances_0": np.full((129, 1), 40.0),
        }
        with path.open("wb") as file:
            savemat(file, variables)
    # In this table of the release ids are numbers.
    _write_subjects(folder, FOLDER_128, [(int(number), kind) for number, kind in people])
    return root


def write_pred_d003(root, n_people=8):
    folder = root / "Depression Rest" / "Matlab Files"
    folder.mkdir(parents=True)
    book = openpyxl.Workbook()
    book.active.title = "Key"
    sheet = book.create_sheet("Depression Rest")
    sheet.append(
        ["id", "MDD", "MDD_note", "HamD", "sex", "age", "BDI", "BDI_Anh", "BDI_Mel", "TAI"]
    )
    for person in range(n_people):
        number, depressed = 507 + person, person % 2
        names = [*PRED_CHANNELS, "HEOG", "VEOG"]
        data = signals(len(names), 500, person, depressed).astype(np.float32)
        struct = _eeglab_struct(number, names, data)
        savemat(folder / f"{number}_Depression_REST.mat", {"EEG": struct})
        sheet.append([number, 99, None, None, 1, 19, 25 if depressed else 2, 1, 1, 40])
    book.save(root / "Depression Rest" / "Data_4_Import_REST.xlsx")
    return root


WRITERS = {"modma3": write_modma3, "modma128": write_modma128, "pred-d003": write_pred_d003}


def _modma_people(n_people):
    return [
        (f"{'0201' if person % 2 else '0202'}{person:04d}", "MDD" if person % 2 else "HC")
        for person in range(n_people)
    ]


def _write_subjects(folder, name, people):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sheet1"
    sheet.append(["subject id", "type", "age", "gender", "education（years）", "PHQ-9"])
    for number, kind in people:
        sheet.append([number, kind, 30, "M", 12, 20])
    book.save(folder / f"subjects_information_{name}.xlsx")


def _eeglab_struct(number, names, data):
    chanlocs = np.array([(name, 0.0) for name in names], dtype=[("labels", object), ("X", object)])
    events = [(17, 1.0), ("boundary", 500.0 * SECONDS)]
    event = np.array(events, dtype=[("type", object), ("latency", object)])
    return {
        "setname": str(number),
        "data": data,
        "srate": 500.0,
        "nbchan": len(names),
        "pnts": data.shape[1],
        "trials": 1,
        "xmin": 0.0,
        "xmax": (data.shape[1] - 1) / 500,
        "chanlocs": chanlocs,
        "event": event,
    }
