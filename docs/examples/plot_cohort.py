"""
From recordings to a scalp map
==============================

Which features and channels differ between two groups? Recordings are simulated, so the answer is known.
"""

# %%
# Simulate 24 participants with 19 channels. Some electrodes detach. With your own files,
# :func:`~idfsmec.recordings.read_manifest` or :func:`~idfsmec.recordings.read_bids` returns such a list.
import matplotlib.pyplot as plt

from idfsmec import IDFSMEC
from idfsmec.features import extract_table
from idfsmec.recordings import simulate_cohort
from idfsmec.report import plot_channel_weights, plot_missing_map, plot_score_heatmap, use_style
from idfsmec.selection import channel_frame, ranking_frame

use_style()  # the look of the report
cohort = simulate_cohort(24, 19, duration=40, effect_size=2.0, detached=0.1, random_state=0)
cohort.detachments.head()

# %%
# Filter, cut into epochs of 10 s, detect missing channels and compute 18 features per channel.
extraction = extract_table(cohort.recordings)
table = extraction.table
print(extraction.summary())

# %%
# The missing channels, by participant.
by_subject = (~table.observed).groupby(table.subjects).mean()
fig, ax = plt.subplots(figsize=(7, 4.5))
plot_missing_map(by_subject, ax=ax)
plt.show()

# %%
# Rank. With ``groups``, each participant counts once. The simulated groups
# differ in alpha power at F3, F4, O1 and O2, and in theta power at Fz.
selector = IDFSMEC(n_features_to_select=10).fit(table.X, table.y)
leading = channel_frame(selector)["channel"].head(5)
print("channels that differ:       ", *sorted(cohort.informative_channels))
print("channels with most weight:  ", *sorted(leading))
ranking_frame(selector)[["rank", "channel", "feature", "score", "direction", "hedges_g"]].head(10)

# %%
# Channel weights on the scalp, and the scores of all features. Features of a channel that repeat each other
# are not both selected.
fig, ax = plt.subplots(figsize=(5, 4.5))
plot_channel_weights(selector, ax=ax)
plt.show()

fig, ax = plt.subplots(figsize=(7, 5))
plot_score_heatmap(ranking_frame(selector), ax=ax)
plt.show()
