"""
Train on one cap, predict on another
====================================

A model is fitted to people recorded with 64 electrodes. New people come with half of them. Both
cohorts are simulated; with your own data, ``idfsmec train`` and ``idfsmec predict`` do the same.
"""

# %%
# The training data: 64 channels, a feature table, a model. It is fitted to all people, and measured on
# folds of people that it had not seen.
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd

from idfsmec.evaluation import train_model
from idfsmec.features import extract_table
from idfsmec.prediction import extract_subjects, predict_subjects
from idfsmec.recordings import simulate_cohort
from idfsmec.report import plot_calibration

cohort = simulate_cohort(24, 64, duration=30, effect_size=1.5, random_state=0)
model = train_model(extract_table(cohort.recordings).table, n_repeats=1)
pd.DataFrame(model.performance["metrics"]).T.round(2)

# %%
# Probabilities of people held out, against the shares that came true.
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
plot_calibration(model.performance["calibration"], ax=ax)
plt.show()

# %%
# What the model expects when people have fewer channels.
pd.DataFrame(model.performance["by_share"]).round(2)


# %%
# New people, with every second electrode. Features are computed with the model's own settings; what
# is not there is completed.
def half(load):
    raw = load()
    return raw.pick(raw.ch_names[::2])


others = simulate_cohort(10, 64, duration=30, effect_size=1.5, random_state=1)
recordings = [replace(one, load=partial(half, one.load)) for one in others.recordings]
said = predict_subjects(model, extract_subjects(model, recordings))
print(*said.notes, sep="\n")

# %%
# One row per person: the probability with its interval, the share of channels there, the
# channels that spoke loudest, and a warning where somebody is unlike the training data.
frame = said.frame.assign(truth=[one.label for one in recordings])
frame[["subject", "truth", "predicted", "probability", "low", "high", "strongest channels"]].round(
    2
)

# %%
# The same people with the whole cap: how much does half of it change?
whole = predict_subjects(model, extract_subjects(model, others.recordings)).frame
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
for label, own in frame.groupby("truth"):
    ax.scatter(
        whole.loc[own.index, "probability of depressed"],
        own["probability of depressed"],
        label=label,
    )
ax.axline((0, 0), slope=1, color="0.8", zorder=0)
ax.set(xlabel="probability of depressed, 64 electrodes", ylabel="32 electrodes")
ax.legend(frameon=False)
plt.show()
