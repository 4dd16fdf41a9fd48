"""Small recordings and the writers that put them into real files."""

import datetime as dt
import signal

import mne
import numpy as np
import pytest


@pytest.fixture
def make_raw():
    """Make a recording of noise, the same for the same seed."""

    def make(names=("Fp1", "Cz"), *, sfreq=250.0, seconds=4, seed=0, types="eeg"):
        signals = np.random.default_rng(seed).normal(
            scale=2e-5, size=(len(names), int(sfreq * seconds))
        )
        info = mne.create_info(list(names), sfreq, types)
        return mne.io.RawArray(signals, info, verbose="ERROR")

    return make


@pytest.fixture
def identified():
    """Put somebody's name and birthday into a recording."""

    def identify(raw):
        raw.set_meas_date(dt.datetime(2015, 4, 16, 10, 17, tzinfo=dt.UTC))
        raw.info["subject_info"] = {
            "his_id": "P0815",
            "first_name": "San",
            "last_name": "Zhang",
            "birthday": dt.date(1980, 1, 1),
            "sex": 1,
        }
        return raw

    return identify


@pytest.fixture
def at_most_a_minute():
    """Turn a wait without end into a failure."""

    def over(*_):
        raise TimeoutError("waited for ever")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
