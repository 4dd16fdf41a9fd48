"""Inputs of the golden files, made by code: tables of features and recordings."""

import mne
import numpy as np
import pandas as pd

CHANNELS = ["Fp1", "F3", "F4", "Cz", "T7", "O1", "O2"]
FEATURES = ["a", "b", "c", "d", "e"]


def make_table(
    n_subjects=24,
    n_epochs=4,
    n_channels=7,
    n_features=5,
    n_classes=2,
    missing=0.25,
    seed=5,
    effect=3.0,
):
    """Epochs of subjects in three sites, whose first channels differ by class.

    Features of a channel share a factor, so that they are redundant; a channel is missing in
    single epochs and, for some subjects, altogether.
    """
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(n_subjects), n_epochs)
    y = subjects % n_classes
    site = subjects * 3 // n_subjects
    shape = (n_channels, n_features)
    X = 0.6 * rng.normal(size=(n_subjects, *shape))[subjects]
    X += rng.normal(size=(len(subjects), *shape))
    X += rng.normal(size=(len(subjects), n_channels, 1)) * rng.uniform(0.3, 1.2, n_features)
    shift = effect / (1 + np.arange(n_channels))[:, None] * rng.uniform(0, 1, n_features)
    X += shift * y[:, None, None] * np.sign(rng.normal(size=shape))
    X *= np.exp(rng.normal(size=shape))
    X += (0.4 * rng.normal(size=(3, *shape)))[site]
    X[rng.random((len(subjects), n_channels)) < missing / 2] = np.nan
    X[(rng.random((n_subjects, n_channels)) < missing / 2)[subjects]] = np.nan
    columns = [f"{v}__{f}" for v in CHANNELS[:n_channels] for f in FEATURES[:n_features]]
    return {
        "X": pd.DataFrame(X.reshape(len(subjects), -1), columns=columns),
        "y": np.array(["HC", "MDD", "BD"])[y],
        "subjects": np.array([f"s{s:02d}" for s in subjects]),
        "sites": np.array(["Bern", "Lund", "Oslo"])[site],
        "weight": rng.uniform(0.5, 2.0, len(subjects)),
        "score": y + rng.normal(size=n_subjects)[subjects],
        "age": 20.0 + rng.integers(0, 40, n_subjects)[subjects],
    }


def make_complete(n_samples=90, n_features=24, n_classes=2, seed=3):
    """Samples without missing values, for the baselines; two features repeat others."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    X = rng.normal(size=(n_samples, n_features))
    X[:, : n_features // 3] += y[:, None] * rng.uniform(0.1, 1.2, n_features // 3)
    X[:, -1] = X[:, 0] + 0.3 * rng.normal(size=n_samples)
    X[:, -2] = X[:, 1] + 0.1 * rng.normal(size=n_samples)
    names = [f"f{j:02d}" for j in range(n_features)]
    return pd.DataFrame(X, columns=names), np.array(["HC", "MDD", "BD"])[y]


def make_audited(n_subjects=20, n_epochs=4, device=1.0, seed=0):
    """A table whose recordings are described; the line noise goes with the label by device."""
    rng = np.random.default_rng(seed)
    columns = [f"{v}__{f}" for v in ("F3", "Cz", "O2") for f in ("a", "b", "c")]
    y = np.arange(n_subjects) % 2
    amplifier = np.where(rng.random(n_subjects) < device, y, rng.integers(0, 2, n_subjects))
    trait = rng.normal(size=(n_subjects, 9))
    trait[:, 0] += y
    trait[:, 3] += 3.0 * amplifier if device else 0.0
    X = np.repeat(trait, n_epochs, axis=0) + 0.3 * rng.normal(size=(n_subjects * n_epochs, 9))
    names = np.array([f"s{i:02d}" for i in range(n_subjects)])
    facts = [
        {
            "n_channels": 3,
            "sfreq": 250.0,
            "line_amplitude": float(10 ** (amplifier[i] + 0.1 * rng.normal())),
            "drift": float(rng.lognormal()),
            "format": "edf",
        }
        for i in range(n_subjects)
    ]
    recordings = [
        {"recording": f"r{i}", "subject": str(names[i]), "rows": n_epochs, "facts": facts[i]}
        for i in range(n_subjects)
    ]
    return {
        "X": pd.DataFrame(X, columns=columns),
        "y": np.array(["HC", "MDD"])[np.repeat(y, n_epochs)],
        "subjects": np.repeat(names, n_epochs),
        "info": {"recordings": recordings},
    }


CAP = ["Fp1", "Fp2", "F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2"]


def make_signal(seed=0, seconds=40, sfreq=250.0, depressed=False):
    """Microvolts of ten channels: 1/f noise that neighbours share, alpha, line noise at 50 Hz."""
    rng = np.random.default_rng(seed)
    n_times = int(seconds * sfreq)
    frequencies = np.fft.rfftfreq(n_times, 1 / sfreq)
    shape = 1 / np.maximum(frequencies, 1.0)
    sources = np.fft.irfft(np.fft.rfft(rng.normal(size=(6, n_times))) * shape, n_times)
    sources *= 12 / sources.std(axis=1, keepdims=True)
    place = np.linspace(0, 1, len(CAP))[:, None] - np.linspace(0, 1, 6)
    mixing = np.exp(-((place / 0.35) ** 2))
    signal = mixing @ sources + 0.8 * rng.normal(size=(len(CAP), n_times))
    time = np.arange(n_times) / sfreq
    strength = (6.0 + 5.0 * depressed) * np.linspace(0.4, 1.2, len(CAP))[:, None]
    signal += strength * np.sin(2 * np.pi * (10.2 * time + rng.random()))
    signal += rng.uniform(2, 8, (len(CAP), 1)) * np.sin(2 * np.pi * 50.02 * time)
    return signal


def make_damaged(seed=0, seconds=40, sfreq=250.0):
    """The same with a flat channel, one that comes off, one of noise, and one that clips."""
    signal = make_signal(seed, seconds, sfreq)
    rng = np.random.default_rng(seed + 100)
    n_times = signal.shape[1]
    signal[CAP.index("F4"), :] = 0.0
    off = n_times // 2
    signal[CAP.index("P3"), off:] = np.cumsum(rng.normal(size=n_times - off)) * 8
    signal[CAP.index("C4")] = 300 * rng.normal(size=n_times)
    signal[CAP.index("O2"), : n_times // 4] = np.nan
    return signal


def make_raw(signal, sfreq=250.0, bads=()):
    info = mne.create_info(CAP, sfreq, "eeg")
    raw = mne.io.RawArray(signal * 1e-6, info, verbose="error")
    raw.info["bads"] = list(bads)
    raw.info["line_freq"] = 50.0
    return raw


def write_study(folder):
    """Six short recordings, EDF and BrainVision, and their manifest; gives its path."""
    folder.mkdir()
    lines = ["path,subject,label,bads,site,age"]
    for i in range(6):
        signal = make_signal(i, 30, depressed=bool(i % 2))
        if i == 2:
            signal = np.nan_to_num(make_damaged(i, 30))
        name = f"s{i}.vhdr" if i % 3 == 1 else f"s{i}.edf"
        options = {"physical_range": "auto"} if name.endswith(".edf") else {}
        raw = make_raw(signal)
        mne.export.export_raw(folder / name, raw, verbose="error", **options)
        bads = "C3;C4" if i == 3 else ""
        lines.append(f"{name},s{i},{'MDD' if i % 2 else 'HC'},{bads},{'AB'[i // 3]},{30 + i}")
    manifest = folder / "study.csv"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def write_modma3(folder, n_subjects=8, seconds=20):
    """A copy of MODMA with three channels as it is released: text files and a workbook."""
    import openpyxl

    name = "EEG_3channels_resting_lanzhou_2015"
    place = folder / name
    place.mkdir(parents=True)
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sheet1"
    sheet.append(["subject id", "type", "age", "gender", "education（years）", "PHQ-9"])
    for i in range(n_subjects):
        number = f"{'0201' if i % 2 else '0202'}{i:04d}"
        counts = 1.5e6 + 40 * make_signal(i, seconds, depressed=bool(i % 2))[:3]
        np.savetxt(place / f"{number}_still.txt", counts.T.round().astype(int), fmt="%d")
        sheet.append([number, "MDD" if i % 2 else "HC", 30, "M", 12, 20])
    book.save(place / f"subjects_information_{name}.xlsx")
    return folder
