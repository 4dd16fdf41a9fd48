"""
Eleven methods on one table
===========================

All methods share one interface. Those that cannot take NaN get the table filled with training means;
this page compares which features they choose and how long they take.
"""

# %%
# Breast-cancer data of scikit-learn with three blocks of ten features; a fifth of each block is
# missing.
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer

from idfsmec.prediction import METHODS
from idfsmec.report import use_style

use_style()
data = load_breast_cancer()
X, y = data.data.copy(), data.target
rng = np.random.default_rng(0)
X[np.repeat(rng.random((len(y), 3)) < 0.2, 10, axis=1)] = np.nan
filled = SimpleImputer().fit_transform(X)
blocks = np.repeat(["mean", "error", "worst"], 10)

# %%
# The wrapper (PS-NSGA) searches for minutes and is left out here.
ranks, seconds = {}, {}
for method in [m for m in METHODS.values() if m.family in ("proposed", "filter", "embedded")]:
    name = method.name
    selector = method.build(n_features_to_select=10, random_state=0, channels=blocks)
    start = time.perf_counter()
    selector.fit(X if method.takes_missing else filled, y)
    seconds[name] = time.perf_counter() - start
    ranks[name] = selector.ranking_
ranks = pd.DataFrame(ranks, index=data.feature_names)

# %%
# Dark squares are the first ten features of a method.
order = ranks.mean(axis=1).sort_values().index
fig, ax = plt.subplots(figsize=(7, 7.5))
image = ax.imshow(
    np.minimum(ranks.loc[order], 11), cmap="idfsmec_r", aspect="auto", vmin=1, vmax=12
)
ax.set_xticks(range(ranks.shape[1]), ranks.columns, rotation=45, ha="right")
ax.set_yticks(range(len(order)), order)
fig.colorbar(image, label="rank (beyond ten: pale)", ticks=[1, 5, 10])
plt.show()

# %%
# Seconds for one fit.
pd.Series(seconds).sort_values().round(3)
