"""
Rank features when electrodes fall off
======================================

A table of seven channels and five bands. Two features differ between the groups. Frontal electrodes
fell off often, and one that tells the groups apart is missing in every third sample.
"""

# %%
# The table has one row per sample and columns named ``<channel>__<feature>``. NaN means that the
# channel is missing at that sample.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec import IDFSMEC
from idfsmec.report import plot_score_heatmap
from idfsmec.selection import channel_frame, ranking_frame

rng = np.random.default_rng(0)
channels = ["Fp1", "F3", "Fz", "F4", "Cz", "Pz", "O1"]
bands = ["delta", "theta", "alpha", "beta", "gamma"]
y = pd.Series(np.tile(["MDD", "HC"], 120), name="label")
common = rng.normal(size=(240, 7, 1))  # what the bands of a channel have in common
X = pd.DataFrame(
    (common + rng.normal(size=(240, 7, 5))).reshape(240, 35),
    columns=[f"{channel}__{band}" for channel in channels for band in bands],
)
X["F3__alpha"] += 1.2 * (y == "MDD")
X["Fz__theta"] += 1.2 * (y == "MDD")
gone = rng.random((240, 7)) < [0.5, 0.33, 0.1, 0.1, 0.0, 0.1, 0.3]
X = X.mask(np.repeat(gone, 5, axis=1))

# %%
# One call ranks everything. No value is filled in.
selector = IDFSMEC(n_features_to_select=5).fit(X, y)
ranking_frame(selector).head()

# %%
# Channels are weighted too. Fp1, missing in half of the samples, gains nothing from its absence.
channel_frame(selector)

# %%
# Scores of all features: two stand out.
plot_score_heatmap(ranking_frame(selector), note="IDFS-MEC")
plt.show()
