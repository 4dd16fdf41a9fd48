"""
Train with one cap, predict with another
========================================

A model is trained on 64 electrodes. New participants have half of them. Both cohorts are simulated; with your
own data use ``idfsmec train`` and ``idfsmec predict``. Models are for research.
"""

# %%
# Train. The model is fitted to all participants and measured on held-out participants.
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
# Predicted probabilities of held-out participants, against observed frequencies.
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
plot_calibration(model.performance["calibration"], ax=ax)
plt.show()

# %%
# Expected performance if participants have fewer channels.
pd.DataFrame(model.performance["by_share"]).round(2)


# %%
# Predict new participants with every second electrode. Features are computed with the model's settings; missing
# channels are imputed.
def half(load):
    raw = load()
    return raw.pick(raw.ch_names[::2])


others = simulate_cohort(10, 64, duration=30, effect_size=1.5, random_state=1)
recordings = [
    replace(recording, load=partial(half, recording.load)) for recording in others.recordings
]
predictions = predict_subjects(model, extract_subjects(model, recordings))
print(*predictions.notes, sep="\n")

# %%
# One row per participant: class, probability with its 95 % CI, and the channels that contribute most.
frame = predictions.frame.assign(truth=[recording.label for recording in recordings])
columns = [
    "subject",
    "truth",
    "predicted",
    "probability of depressed",
    "low",
    "high",
    "strongest channels",
]
frame[columns].round(2)

# %%
# The same participants with all electrodes.
whole = predict_subjects(model, extract_subjects(model, others.recordings)).frame
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
for label, group in frame.groupby("truth"):
    ax.scatter(
        whole.loc[group.index, "probability of depressed"],
        group["probability of depressed"],
        label=label,
    )
ax.axline((0, 0), slope=1, color="0.8", zorder=0)
ax.set(xlabel="probability of depressed, 64 electrodes", ylabel="32 electrodes")
ax.legend(frameon=False)
plt.show()
