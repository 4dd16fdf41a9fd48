"""
Three hospitals that share no rows
==================================

Three hospitals have recorded people with and without depression; none may give away a person's data.
Each sums up its own table. The sums give the ranking that all rows together would give.
"""

# %%
# The hospitals are simulated: different numbers of people, and the third has no electrode at Fz. With your
# own recordings, :func:`~idfsmec.features.extract_table` makes such tables.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec import IDFSMEC, FeatureTable, summarise
from idfsmec.report import use_style

use_style()
channels, features = ["F3", "Fz", "F4", "Cz", "O1", "O2"], ["theta", "alpha", "beta", "entropy"]
columns = [f"{channel}__{feature}" for channel in channels for feature in features]


def hospital(name, n_people, seed):
    """A table of three epochs per person; alpha differs at F3 and O2, and electrodes fall off."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), 3)
    ill = person % 2 == 1
    X = rng.normal(size=(n_people, 6, 4))[person] + 0.5 * rng.normal(size=(person.size, 6, 4))
    X[ill, 0, 1] += 0.9
    X[ill, 5, 1] += 0.6
    X[rng.random((n_people, 6))[person] < 0.1] = np.nan
    frame = pd.DataFrame(X.reshape(person.size, -1), columns=columns)
    return FeatureTable(frame, np.where(ill, "MDD", "HC"), [f"{name}{i}" for i in person])


a, b = hospital("a", 140, 0), hospital("b", 100, 1)
c = hospital("c", 60, 2).select_channels([one for one in channels if one != "Fz"])

# %%
# In each hospital: the summary, and in words what is in it. ``idfsmec summarise`` writes it to a file.
shared = [summarise(table) for table in (a, b, c)]
print(shared[2].describe())

# %%
# Anywhere else: the ranking. Beside it that of all rows, which nobody would have outside of this page.
# Small hospitals have fewer folds of people, so that no sum is over fewer than ten people of a class; what this
# changes is hardly seen.
selector = IDFSMEC(n_features_to_select=5).fit_summaries(shared)
rows = FeatureTable.concat([a, b, c])
wanted = IDFSMEC().fit(rows.X, rows.y, rows.subjects)
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.axline((0, 0), slope=1, color="0.8", zorder=0)
ax.scatter(wanted.scores_, selector.scores_)
ax.set(xlabel="score from all rows", ylabel="score from three summaries")
plt.show()
selector.get_feature_names_out()

# %%
# With ``min_people=1`` nothing is withheld and all have the same folds. Then only rounding is left.
everything = [summarise(table, min_people=1) for table in (a, b, c)]
exact = IDFSMEC().fit_summaries(everything)
print(f"largest difference: {np.abs(exact.scores_ - wanted.scores_).max():.0e}")

# %%
# The second hospital withdraws: its summary is taken away again.
left = sum(everything[1:], start=everything[0]) - everything[1]
without = FeatureTable.concat([a, c])
wanted = IDFSMEC().fit(without.X, without.y, without.subjects)
print(
    f"largest difference: {np.abs(IDFSMEC().fit_summaries([left]).scores_ - wanted.scores_).max():.0e}"
)

# %%
# The first hospital gets another amplifier, which stretches and shifts what it records. The sums say by how much, so
# that hospitals can be brought to one location and scale without their rows.
stretched = FeatureTable(1.8 * a.X + 3, a.y, a.subjects)
differing = [summarise(stretched, min_people=1), *everything[1:]]
for harmonize in (False, True):
    found = IDFSMEC().fit_summaries(differing, harmonize=harmonize)
    print(f"harmonize={harmonize}: {np.corrcoef(found.scores_, exact.scores_)[0, 1]:.2f}")
