"""A recording difference that is planted in a simulated cohort."""

import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.recordings import simulate_cohort

SMALL = {"duration": 4, "detached": 0, "random_state": 0}


def test_most_of_the_depressed_have_the_other_amplifier_and_few_controls():
    cohort = simulate_cohort(200, 3, confound={"noise": 3.0}, **SMALL)
    other = cohort.amplifiers["amplifier"] == "other"
    assert other[1::2].mean() == pytest.approx(0.9, abs=0.07)
    assert other[::2].mean() == pytest.approx(0.1, abs=0.07)


def test_without_one_everybody_has_the_usual_amplifier():
    cohort = simulate_cohort(6, 3, **SMALL)
    assert set(cohort.amplifiers["amplifier"]) == {"usual"}


def both(confound):
    """The second person as recorded by the usual and by the other amplifier."""
    usual = simulate_cohort(2, 19, **SMALL).recordings[1].load()
    other = simulate_cohort(2, 19, confound=confound, **SMALL)
    assert other.amplifiers["amplifier"].tolist() == ["usual", "other"]
    return usual, other.recordings[1].load()


def test_controls_and_brains_stay_as_they_are():
    usual = simulate_cohort(2, 19, **SMALL).recordings[0].load().get_data()
    other = simulate_cohort(2, 19, confound={"noise": 3.0}, **SMALL)
    assert (other.recordings[0].load().get_data() == usual).all()


@pytest.mark.parametrize(
    ("confound", "low", "high"), [({"line": 20.0}, 49, 51), ({"noise": 20.0}, 80, 120)]
)
def test_more_line_noise_and_more_sensor_noise(confound, low, high):
    powers = [one.compute_psd(fmin=low, fmax=high, verbose="error").get_data() for one in
              both(confound)]  # fmt: skip
    assert powers[1].mean() > 5 * powers[0].mean()


def test_a_low_pass_a_gain_and_a_coarse_converter():
    usual, low = both({"lowpass": 30.0})
    assert np.diff(low.get_data()).std() < 0.7 * np.diff(usual.get_data()).std()
    usual, loud = both({"gain": 2.0})
    assert loud.get_data() == pytest.approx(2 * usual.get_data())
    _, coarse = both({"step": 0.5})
    steps = coarse.get_data() / 0.5e-6
    assert steps == pytest.approx(np.round(steps), abs=1e-6)


def test_channels_that_were_not_recorded():
    usual, fewer = both({"channels": 2})
    assert fewer.ch_names == usual.ch_names[:-2]


@pytest.mark.parametrize(
    "confound", [{"colour": 1.0}, {"noise": -1.0}, {"lowpass": 500.0}, {"channels": 3}]
)
def test_impossible_amplifiers_are_refused(confound):
    with pytest.raises(InputError, match="confound"):
        simulate_cohort(2, 3, confound=confound, **SMALL)
