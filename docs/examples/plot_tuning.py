"""
Choose parameters by inner folds
================================

:class:`~idfsmec.IDFSMECCV` chooses ``lam``, ``gamma`` and the number of features. All folds and all
values are solved in one batch, so the search costs little more than its judging classifier.
"""

# %%
# Forty people with ten samples each. What a person has in common is stronger than what the group
# has in common, as in real recordings: folds must keep people together.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec import IDFSMECCV
from idfsmec.report import use_style

use_style()
rng = np.random.default_rng(0)
person = np.repeat(np.arange(40), 10)
y = np.where(person % 2, "MDD", "HC")
channels = ["F3", "F4", "Cz", "O1", "O2"]
columns = [f"{channel}__{band}" for channel in channels for band in ("theta", "alpha", "beta")]
X = pd.DataFrame(rng.normal(size=(40, 15))[person] + rng.normal(size=(400, 15)), columns=columns)
X["F3__alpha"] += 1.2 * (y == "MDD")
X["F4__alpha"] -= 1.2 * (y == "MDD")
X = X.mask(np.repeat(rng.random((400, 5)) < 0.2, 3, axis=1))

search = IDFSMECCV(n_features_to_select=[1, 2, 3, 5, 8, 15]).fit(X, y, groups=person)
search.best_params_, round(search.best_score_, 3)

# %%
# The features it keeps:
list(search.get_feature_names_out())

# %%
# Mean score of the inner folds over numbers of features: the log loss by person, with its sign turned,
# so that more is better; the dashed line is what guessing has. The best of a grid is always a little
# optimistic: report the accuracy of outer folds.
results = pd.DataFrame(search.cv_results_)
best_by_count = results.groupby("param_n_features_to_select")["mean_test_score"].agg(
    ["mean", "max"]
)
fig, ax = plt.subplots(figsize=(5, 3))
best_by_count.plot(ax=ax, marker="o")
ax.legend(["mean over lam and gamma", "best lam and gamma"])
ax.axhline(-np.log(2), color="0.6", linestyle="--")
ax.set(xlabel="features kept", ylabel="score by person (inner folds)")
plt.show()
