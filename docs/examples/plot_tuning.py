"""
Choose settings by inner folds
==============================

:class:`~idfsmec.IDFSMECCV` chooses ``lam``, ``gamma`` and the number of features by folds of participants.
"""

# %%
# Forty simulated participants with ten epochs each. Alpha power differs at F3 and F4. Epochs of a participant
# resemble each other, so folds keep them together.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec import IDFSMECCV, FeatureTable
from idfsmec.report import use_style

use_style()
rng = np.random.default_rng(0)
subject = np.repeat(np.arange(40), 10)
y = np.where(subject % 2, "MDD", "HC")
channels = ["F3", "F4", "Cz", "O1", "O2"]
features = ["delta", "theta", "alpha", "beta", "gamma", "entropy"]
columns = [f"{channel}__{feature}" for channel in channels for feature in features]
X = pd.DataFrame(rng.normal(size=(40, 30))[subject] + rng.normal(size=(400, 30)), columns=columns)
X["F3__alpha"] += 1.2 * (y == "MDD")
X["F4__alpha"] -= 1.2 * (y == "MDD")
X = X.mask(np.repeat(rng.random((400, 5)) < 0.2, 6, axis=1))
table = FeatureTable(X, y, [f"s{i:02}" for i in subject])

search = IDFSMECCV(n_features_to_select=[1, 2, 3, 5, 8, 15]).fit(
    table.X, table.y, groups=table.subjects
)
search.best_params_, round(search.best_score_, 3)

# %%
# The features that it keeps:
list(search.get_feature_names_out())

# %%
# Score of the inner folds against the number of features: the negative log loss per participant. The dashed line
# is chance. The best score of a grid is optimistic: report the accuracy of outer folds (``idfsmec benchmark``).
results = pd.DataFrame(search.cv_results_)
by_count = results.groupby("param_n_features_to_select")["mean_test_score"].agg(["mean", "max"])
fig, ax = plt.subplots(figsize=(5, 3))
by_count.plot(ax=ax, marker="o")
ax.legend(["mean over lam and gamma", "best lam and gamma"])
ax.axhline(-np.log(2), color="0.6", linestyle="--")
ax.set(xlabel="number of features", ylabel="negative log loss")
plt.show()
