"""
Three sites that share sums
===========================

Three sites have recorded participants with and without depression, and none may share rows. Each releases
sums. They give the feature weights that the pooled rows would give.
"""

# %%
# Simulate three sites of different size. The third has no electrode at Fz. With your own recordings, :func:`~idfsmec.features.extract_table` makes such tables.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec import IDFSMEC, FeatureTable, summarise
from idfsmec.report import use_style

use_style()
channels, features = ["F3", "Fz", "F4", "Cz", "O1", "O2"], ["theta", "alpha", "beta", "entropy"]
columns = [f"{channel}__{feature}" for channel in channels for feature in features]


def site(name, n_subjects, seed):
    """A table of three epochs per participant; alpha differs at F3 and O2, and electrodes fall off."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(n_subjects), 3)
    ill = subject % 2 == 1
    X = rng.normal(size=(n_subjects, 6, 4))[subject] + 0.5 * rng.normal(size=(subject.size, 6, 4))
    X[ill, 0, 1] += 0.9
    X[ill, 5, 1] += 0.6
    X[rng.random((n_subjects, 6))[subject] < 0.1] = np.nan
    frame = pd.DataFrame(X.reshape(subject.size, -1), columns=columns)
    return FeatureTable(frame, np.where(ill, "MDD", "HC"), [f"{name}{i}" for i in subject])


a, b = site("a", 140, 0), site("b", 100, 1)
c = site("c", 60, 2).select_channels(["F3", "F4", "Cz", "O1", "O2"])

# %%
# At each site: make the summary and print its content. ``idfsmec summarise`` writes it to a file.
summaries = [summarise(table) for table in (a, b, c)]
print(summaries[2].describe())

# %%
# Anywhere else: rank, and compare with the pooled rows. Sites have fewer folds than the pooled rows, so channel
# weights differ slightly.
selector = IDFSMEC(n_features_to_select=5).fit_summaries(summaries)
rows = FeatureTable.concat([a, b, c])
pooled = IDFSMEC().fit(rows.X, rows.y)
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.axline((0, 0), slope=1, color="0.8", zorder=0)
ax.scatter(pooled.scores_, selector.scores_)
ax.set(xlabel="score from the pooled rows", ylabel="score from three summaries")
plt.show()
selector.get_feature_names_out()

# %%
# Feature weights are equal to rounding. The sites and participants that count for each channel:
print(
    f"largest difference: {np.abs(selector.feature_weights_ - pooled.feature_weights_).max():.0e}"
)
print("\n".join(selector.study_.contributions()))

# %%
# The second site withdraws.
remaining = summaries[0] + summaries[1] + summaries[2] - summaries[1]
IDFSMEC(n_features_to_select=5).fit_summaries([remaining]).get_feature_names_out()
