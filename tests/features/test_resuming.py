"""What was computed before is taken again where it would be computed the same, and only there."""

import os
import re
import subprocess
import sys
import textwrap
import threading
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import mne
import numpy as np
import pytest

import idfsmec
from idfsmec.features import FEATURES, Feature, FeatureSettings, extract_table
from idfsmec.recordings.recording import file_recording

GUIDE = Path(__file__).parents[2] / "docs/guide/extend.md"
PLAIN = {"band_pass": None, "line_freq": "off", "detect": False, "channels": "all"}
POWER = 2


def moment(signal, k=2):
    return (signal.data**k).mean(axis=-1)


def by_global(signal):
    return moment(signal, POWER)


def closure(k):
    return lambda signal: moment(signal, k)


@dataclass
class Moment:
    k: int

    def __call__(self, signal):
        return moment(signal, self.k)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "s1_raw.fif"
    samples = np.random.default_rng(0).normal(scale=1e-5, size=(2, 2500))
    info = mne.create_info(["Fp1", "Fp2"], 250.0, "eeg")
    mne.io.RawArray(samples, info, verbose="error").save(path, verbose="error")
    return path


@pytest.fixture
def extract(path, tmp_path):
    """Extract with a feature of this function; gives how the recording ended, and its values."""

    def extract(function, outputs=None):
        settings = FeatureSettings(features=[Feature("moment", function, outputs)], **PLAIN)
        made = extract_table(
            [file_recording(path, "s1", "HC")], settings, parts=tmp_path / "parts"
        )
        return made.outcomes[0].status, made.table.X.to_numpy().tolist()

    return extract


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (partial(moment, k=2), partial(moment, k=4)),
        (lambda signal: moment(signal, 2), lambda signal: moment(signal, 4)),
        (closure(2), closure(4)),
        (Moment(2), Moment(4)),
    ],
    ids=["partial", "lambda", "closure", "class"],
)
def test_another_function_is_computed_anew_and_each_is_found_again(extract, first, second):
    squares, fourths = extract(first), extract(second)
    assert squares[0] == fourths[0] == "done"
    assert squares[1] != fourths[1]
    assert extract(first) == ("resumed", squares[1])
    assert extract(second) == ("resumed", fourths[1])


def test_a_changed_global_of_the_module_is_computed_anew(extract, monkeypatch):
    squares = extract(by_global)
    monkeypatch.setattr(sys.modules[__name__], "POWER", 4)
    assert extract(by_global) == extract(partial(moment, k=4))
    assert extract(by_global)[0] == "resumed"
    monkeypatch.setattr(sys.modules[__name__], "POWER", 2)
    assert extract(by_global) == ("resumed", squares[1])


def test_other_names_of_outputs_are_computed_anew(extract):
    assert extract(moment, ["first"])[0] == extract(moment, ["second"])[0] == "done"
    assert extract(moment, lambda settings: ["first"])[0] == "done"
    assert extract(moment, ["first"])[0] == "resumed"


def test_a_feature_that_cannot_be_described_is_computed_every_time_and_said_so_once(extract):
    lock = threading.Lock()

    def locked(signal):
        with lock:
            return moment(signal)

    message = r"The feature 'moment' cannot be described \(.*lock.*\)\. Its results are not cached"
    with pytest.warns(UserWarning, match=message):
        values = extract(locked)
    assert values[0] == "done"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert extract(locked) == values


def test_a_feature_of_the_package_is_found_again(path, tmp_path):
    recordings, settings = [file_recording(path, "s1", "HC")], FeatureSettings(**PLAIN)
    made = [extract_table(recordings, settings, parts=tmp_path / "parts") for _ in range(2)]
    assert [each.outcomes[0].status for each in made] == ["done", "resumed"]
    assert made[0].table.equals(made[1].table)


@pytest.mark.slow
def test_the_guides_features_are_found_again_by_a_process_with_another_hash_seed(path, tmp_path):
    blocks = re.findall(r"```python\n(@?.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    features = [block for block in blocks if "@register_feature(" in block]
    assert len(features) == 2
    script = f"""
from idfsmec.features import extract_table
from idfsmec.recordings.recording import file_recording
from pathlib import Path
settings = FeatureSettings(features=["line_length", "rp"])
recordings = [file_recording(Path({str(path)!r}), "s1", "HC")]
print(extract_table(recordings, settings, parts=Path("parts")).outcomes[0].status)
"""
    (tmp_path / "own.py").write_text("\n".join([*features, textwrap.dedent(script)]))
    source = str(Path(idfsmec.__file__).parents[1])
    ended = [
        subprocess.run(
            [sys.executable, "own.py"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[-1]
        for seed in ("1", "2")
    ]
    assert ended == ["done", "resumed"]
    assert not {"line_length", "rp"} & set(FEATURES)
