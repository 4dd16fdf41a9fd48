"""
The weight of redundancy
========================

``lam`` decides how many features of a channel share its weight. :func:`~idfsmec.idfs_path` fits all
values at once.
"""

# %%
# Breast-cancer data of scikit-learn: three blocks of ten features (mean, error and worst value of
# ten measurements) play the part of channels. A third of the first block is missing.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from idfsmec import idfs_path
from idfsmec.report import use_style

use_style()
data = load_breast_cancer()
X, y = data.data.copy(), data.target
X[np.random.default_rng(0).random(len(y)) < 0.33, :10] = np.nan
blocks = np.repeat(["mean", "error", "worst"], 10)

lams = np.logspace(-3, 4, 15)
path = idfs_path(X, y, channels=blocks, lams=lams, gammas=[1.1, 1.5, 2, 3, 5, 9])

# %%
# With a small ``lam`` few features of a block carry all its weight; with a large one the weight
# spreads over features that do not repeat each other.
fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
for ax, block in zip(axes, path.channel_names, strict=True):
    ax.semilogx(lams, path.feature_weights[:, blocks == block])
    ax.set(title=block, xlabel="lam")
axes[0].set_ylabel("feature weight")
plt.show()

# %%
# ``gamma`` decides how evenly the blocks are weighted. Values near 1 give the best block almost
# everything; large ones make all alike.
fig, ax = plt.subplots(figsize=(5, 3))
ax.plot(path.gammas, path.channel_weights[7], marker="o", label=path.channel_names)
ax.set(xlabel="gamma", ylabel="block weight", title=f"lam = {lams[7]:.2g}")
ax.legend()
plt.show()
