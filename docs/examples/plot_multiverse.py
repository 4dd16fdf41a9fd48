"""
Does a difference survive other choices?
========================================

Two differences are put into simulated recordings. One is in the brain. The other is activity of the reference electrode, which all channels
record, and which an average reference takes out.
"""

# %%
# In depressed participants, channel Fz has more theta, and the reference has beta of 20 Hz.
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from idfsmec.features import FeatureSettings
from idfsmec.multiverse import run_multiverse
from idfsmec.recordings import simulate_cohort
from idfsmec.report import plot_specification_curve, use_style
from idfsmec.report.multiverse import describe_multiverse

use_style()


def with_differences(recording, seed):
    """Return a recording with both, of a strength that varies between participants."""

    def load():
        raw = recording.load().load_data()
        rng, times = np.random.default_rng(seed), raw.times
        strength = 1e-6 * rng.lognormal(sigma=0.3, size=2) * (recording.label == "depressed")
        theta, beta = (np.sin(2 * np.pi * frequency * times) for frequency in (6, 20))
        raw.apply_function(lambda signal: signal + 8 * strength[0] * theta, picks=["Fz"])
        return raw.apply_function(lambda signal: signal + 6 * strength[1] * beta)

    return replace(recording, load=load)


cohort = simulate_cohort(24, 19, duration=40, effect_size=0, detached=0.02, random_state=1)
recordings = [with_differences(each, seed) for seed, each in enumerate(cohort.recordings)]

# %%
# Three choices have eight combinations.
choices = {
    "reference": {"as recorded": {"reference": "keep"}, "average": {"reference": "average"}},
    "epochs": {"10 s": {"epoch": 10}, "4 s": {"epoch": 4}},
    "powers": {"as they are": {"features": ["ap"]}, "logarithms": {"features": ["log_ap"]}},
}
settings = FeatureSettings(features=["ap"])
multiverse = run_multiverse(recordings, settings, choices=choices, n_specifications=8)
print(*describe_multiverse(multiverse), sep="\n")

# %%
# Theta at Fz differs in all specifications.
plot_specification_curve(multiverse, "Fz__ap_theta")
plt.show()

# %%
# Beta differs as recorded, in all channels, and not against the average.
plot_specification_curve(multiverse, "P3__ap_beta")
plt.show()

# %%
# What each feature depends on.
for feature in ("Fz__ap_theta", "P3__ap_beta"):
    print(feature, multiverse.depends_on(feature))
