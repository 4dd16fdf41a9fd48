"""
Five ways in which channels go missing
======================================

To see how a selector bears gaps, make them on purpose. :func:`~idfsmec.missing.simulate_missing` knows five
patterns at any rate.
"""

# %%
# A table of eight subjects with twelve epochs each, 19 channels of the 10-20 system.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec.missing import simulate_missing
from idfsmec.report import use_style
from idfsmec.table import FeatureTable

use_style()
channels = "Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2".split()
rng = np.random.default_rng(0)
table = FeatureTable(
    X=pd.DataFrame(rng.normal(size=(96, 19)), columns=[f"{name}__alpha" for name in channels]),
    y=pd.Series(np.repeat(["HC", "MDD"], 48)),
    subjects=pd.Series(np.repeat([f"sub-{i}" for i in range(8)], 12)),
    info={},
)

# %%
# Pale is missing. All five patterns remove 30 % of the channel-samples.
patterns = ["random", "recording", "burst", "region", "uneven"]
fig, axes = plt.subplots(1, 5, figsize=(11, 4), sharey=True)
for ax, pattern in zip(axes, patterns, strict=True):
    observed = simulate_missing(table, 0.3, pattern, random_state=0).observed.to_numpy()
    ax.imshow(observed, aspect="auto", vmin=0, vmax=2, interpolation="nearest")
    ax.hlines(np.arange(11.5, 96, 12), -0.5, 18.5, color="white", linewidth=1.5)
    ax.set(title=f"{pattern}\n{1 - observed.mean():.0%} missing", xlabel="channel")
axes[0].set_ylabel("epoch (white lines: subjects)")
plt.show()
