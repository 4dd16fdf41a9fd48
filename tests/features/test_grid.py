"""Where epochs lie, before and behind the resampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.features import SignalPath


@settings(max_examples=100, deadline=None)
@given(
    sfreq=st.sampled_from([100.0, 128.0, 160.0, 250.0, 256.0, 499.9998, 500.0, 512.0, 1000.0]),
    n_times=st.integers(2000, 40_000),
    epoch=st.sampled_from([1.0, 1.5, 2.0]),
    overlap=st.sampled_from([0.0, 0.3, 0.5, 0.96]),
)
def test_epochs_stay_inside_the_recording_at_any_rate(sfreq, n_times, epoch, overlap):
    grid = SignalPath(epoch=epoch, overlap=overlap).grid(n_times, sfreq)
    assert grid.begins[0] == 0
    assert (grid.ends <= n_times).all()
    np.testing.assert_allclose(grid.begins / sfreq, grid.starts, atol=1.01 / sfreq + 1e-3)
    np.testing.assert_allclose((grid.ends - grid.begins) / sfreq, epoch, atol=2.01 / sfreq)
    # One more epoch would not fit.
    assert (grid.starts[-1] + grid.step / grid.rate + epoch) * sfreq > n_times - 2


@pytest.mark.parametrize(("sfreq", "overlap"), [(500.0, 0.0), (500.0, 1.0), (256.0, 0.3)])
def test_the_recording_as_it_came_is_cut_at_the_same_times(sfreq, overlap):
    time = np.arange(int(20 * sfreq)) / sfreq
    grid = SignalPath(epoch=2, overlap=overlap).grid(time.size, sfreq)
    epochs = grid.cut_source(time[np.newaxis])
    assert epochs.shape[:2] == (grid.n_epochs, 1)
    np.testing.assert_allclose(epochs[:, 0, 0], grid.starts, atol=1 / sfreq)
    np.testing.assert_allclose(epochs[:, 0, -1], grid.starts + 2, atol=2.5 / sfreq)


def test_epochs_of_the_resampled_signal_are_views():
    grid = SignalPath(epoch=2, overlap=1).grid(2500, 250.0)
    signal = np.arange(2500.0)[np.newaxis]
    epochs = grid.cut(signal)
    assert np.shares_memory(epochs, signal)
    assert epochs[:, 0, 0].tolist() == [0, 250, 500, 750, 1000, 1250, 1500, 1750, 2000]


def test_an_overlap_that_leaves_no_step_is_refused():
    with pytest.raises(InputError, match="make no sense at 250 Hz"):
        SignalPath(epoch=2, overlap=1.999).grid(5000, 250.0)
