"""
Real recordings: how sure is a ranking?
=======================================

Eyes-open EEG of 28 controls and 31 patients with depression: Wajid Mumtaz, *MDD Patients and Healthy Controls EEG Data (New)*, figshare
2016, `10.6084/m9.figshare.4244171 <https://doi.org/10.6084/m9.figshare.4244171>`_, CC BY 4.0. The file beside this example was computed from it
with ``idfsmec features``: differential entropy of five bands at 19 channels, mean over epochs of 10 s, one row per participant. Participants
are renamed. The author endorses nothing.
"""

# %%
# Rank. ``groups`` are the participants, which the table has as its index.
import matplotlib.pyplot as plt

from idfsmec import IDFSMEC, FeatureTable, StabilitySelector
from idfsmec.report import (
    plot_channel_weights,
    plot_effects,
    plot_selection_frequency,
    use_style,
)
from idfsmec.selection import ranking_frame

use_style()  # the look of the report
table = FeatureTable.read("mumtaz_means.csv")
selector = IDFSMEC(n_features_to_select=10).fit(table.X, table.y)
fig, ax = plt.subplots(figsize=(5, 4.5))
plot_channel_weights(selector, ax=ax)
plt.show()

# %%
# How much the groups differ in the leading features, one value per participant. The features were selected for their
# size, so new participants will differ less.
fig, ax = plt.subplots(figsize=(8, 5.5))
plot_effects(ranking_frame(selector), labels=["HC", "MDD"], ax=ax)
plt.show()

# %%
# Would other participants give the same features? Each half of the participants is ranked on its own.
halves = StabilitySelector(IDFSMEC(), n_resamples=50, random_state=0).fit(table.X, table.y)
print(f"stability {halves.stability_.value:.2f} ({halves.stability_.verdict})")
fig, ax = plt.subplots(figsize=(6, 5))
frequencies = dict(zip(table.X.columns, halves.frequencies_))
plot_selection_frequency(frequencies, threshold=halves.threshold_, ax=ax)
plt.show()

# %%
# Before a conclusion, ask whether it is the illness. The audit needs the recordings, because most acquisition facts are in
# the files. In this data set the groups were recorded with different channel sets: see the :doc:`case study </case_mumtaz>`.
