"""Small tables, and a small study of real files, that many tests share."""

import gc
import os
from pathlib import Path

import mne
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from matplotlib.figure import Figure

from tests import seeds  # isort: skip - before idfsmec, whose modules take NumPy's generators

from idfsmec.cli.console import console
from idfsmec.recordings import simulate_cohort
from tests.clusters import two_workers

# Without a number of processes all cores are used: here one, whatever the machine has, because a
# worker process imports everything first. Tests of processes give a number.
os.environ["LOKY_MAX_CPU_COUNT"] = "1"
# Errors are broken at the width of the terminal, and tests look for whole sentences.
console("stderr").width = 1000
# Whoever changes nothing sees the same few examples again; how long one takes says how busy the
# machine is. For many new examples: pytest --hypothesis-profile=searching
patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("searching", max_examples=100, **patient)
settings.register_profile("steady", derandomize=True, max_examples=20, **patient)
settings.load_profile("steady")


def pytest_runtest_setup(item):
    """Allow generators without a seed only in tests of chance itself."""
    seeds.by_chance = item.get_closest_marker("chance") is not None


def pytest_collection_finish():
    """Leave what imports made out of garbage collection: a twentieth of the suite's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


# Three formats, three sampling rates, three channel sets.
PLACES = [
    # name, label, sampling rate, seconds, channels taken out
    ("s01.edf", "HC", 250.0, 42.0, []),
    ("s02_raw.fif", "MDD", 500.0, 30.0, ["Fz", "Pz"]),
    ("s03.vhdr", "HC", 256.0, 21.0, ["O1"]),
    ("s04.edf", "MDD", 250.0, 35.0, []),
]


def make_channels(
    n_samples=120, n_channels=4, n_features=5, n_classes=2, missing=0.3, seed=0, effect=0.8
):
    """Correlated features of channels, of which the first ones tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    X = np.empty((n_samples, n_channels, n_features))
    for v in range(n_channels):
        latent = rng.normal(size=(n_samples, 3))
        latent[:, 0] += effect / (1 + v) * rng.normal(size=n_classes)[y]
        X[:, v] = latent @ rng.normal(size=(3, n_features)) + rng.normal(
            size=(n_samples, n_features)
        )
    X[rng.random((n_samples, n_channels)) < missing] = np.nan
    channels = np.repeat([f"E{v + 1}" for v in range(n_channels)], n_features)
    return X.reshape(n_samples, -1), y, channels


@pytest.fixture
def incomplete():
    return make_channels()


@pytest.fixture(scope="session")
def raws():
    """One simulated Raw per entry of PLACES, 19 channels, in volts."""
    made = {}
    for seed, (name, _, sfreq, seconds, absent) in enumerate(PLACES):
        cohort = simulate_cohort(
            1, 19, sfreq=sfreq, duration=seconds, detached=0, artifacts=False, random_state=seed
        )
        raw = cohort.recordings[0].load().drop_channels(absent)
        if seed % 2:  # another order of channels
            raw.reorder_channels(raw.ch_names[::-1])
        made[name] = raw
    return made


def write(raw, path):
    if path.suffix == ".fif":
        raw.save(path, verbose="error")
    else:
        physical = "auto" if path.suffix == ".edf" else None
        options = {"physical_range": physical} if physical else {}
        mne.export.export_raw(path, raw, verbose="error", **options)


def write_study(folder, raws):
    """Write recordings and a manifest; gives the manifest's path."""
    folder.mkdir()
    lines = ["path,subject,label,bads"]
    for name, label, *_ in PLACES:
        write(raws[name].copy(), folder / name)
        bads = "C3;C4" if name == "s04.edf" else ""
        lines.append(f"{name},{name[:3]},{label},{bads}")
    manifest = folder / "study.csv"
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


@pytest.fixture
def study(tmp_path, raws):
    """A folder with recordings and a manifest, to be changed by a test."""
    return write_study(tmp_path / "study", raws)


@pytest.fixture(scope="session")
def shared_study(tmp_path_factory, raws):
    """The same for tests that only read it."""
    return write_study(tmp_path_factory.mktemp("shared") / "study", raws)


@pytest.fixture
def spoil():
    """Overwrite a file by something that no reader takes for a recording."""

    def do(path):
        path.write_bytes(np.random.default_rng(0).bytes(2000))

    return do


def leave_figure_files_empty(monkeypatch):
    """Leave the files beside a page empty, whose drawing takes most of the time of a report.

    The page itself has its figures. Tests of the files are in tests/report/test_page.py.
    """
    save = Figure.savefig

    def savefig(figure, target, **options):
        if isinstance(target, Path):
            target.touch()
        else:
            save(figure, target, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.fixture
def empty_figure_files(monkeypatch):
    """Leave them empty in one test."""
    leave_figure_files_empty(monkeypatch)


@pytest.fixture(scope="module")
def cluster():
    """A real Dask cluster, where Dask is installed."""
    with two_workers() as found:
        yield found
