"""
From recordings to a scalp map
==============================

A simulated cohort stands in for your recordings: resting EEG with a known difference between two
groups, blinks, muscle, and electrodes that lose contact.
"""

# %%
# Every recording is made when it is loaded, one at a time. With your own files,
# :func:`~idfsmec.recordings.read_manifest` or :func:`~idfsmec.recordings.read_bids` gives such a list.
import matplotlib.pyplot as plt

from idfsmec import IDFSMEC
from idfsmec.features import extract_table
from idfsmec.recordings import simulate_cohort
from idfsmec.report import plot_channel_weights, plot_missing_map, plot_score_heatmap, use_style
from idfsmec.selection import channel_frame, ranking_frame

use_style()  # figures look as in the report
cohort = simulate_cohort(24, 19, duration=40, effect_size=2.0, detached=0.1, random_state=0)
cohort.detachments.head()

# %%
# Resample, filter, cut into epochs of 10 s, find channels that carry no EEG, compute 18 features of
# each channel: one call.
extraction = extract_table(cohort.recordings)
table = extraction.table
print(extraction.summary())

# %%
# What is missing, by recording and channel.
by_recording = (~table.observed).groupby(table.subjects).mean()
fig, ax = plt.subplots(figsize=(7, 4.5))
plot_missing_map(by_recording, ax=ax)
plt.show()

# %%
# Rank. The truth is known here: alpha power differs at F3, F4, O1 and O2, theta power at Fz. Features
# of a channel that say the same (``ap_alpha`` and ``de_alpha``) are not both chosen: that is the
# penalty on redundancy at work.
selector = IDFSMEC(n_features_to_select=10).fit(table.X, table.y)
heaviest = channel_frame(selector)["channel"].head(5)
print("channels that differ:    ", *sorted(cohort.informative_channels))
print("channels weighted most:  ", *sorted(heaviest))
ranking_frame(selector).head(10)

# %%
# Channel weights on the scalp, and the scores of all features.
fig, ax = plt.subplots(figsize=(5, 4.5))
plot_channel_weights(dict(channel_frame(selector)[["channel", "weight"]].to_numpy()), ax=ax)
plt.show()

fig, ax = plt.subplots(figsize=(7, 5))
plot_score_heatmap(ranking_frame(selector), ax=ax)
plt.show()
