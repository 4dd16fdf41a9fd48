"""
EEG, audio and a questionnaire in one table
===========================================

A channel is any block of features that goes missing together. Here every person has EEG and a
questionnaire, but a third of them were never recorded speaking. Nothing is filled and nobody is
dropped: each block is learned from the people who have it.
"""

# %%
# A table with three blocks
# -------------------------
# The part of a column's name before the last ``__`` is its block. Groups differ in one feature of
# each block, most in the voice. The data are made up.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec import IDFSMEC
from idfsmec.prediction import IDFSMECClassifier
from idfsmec.report import use_style
from idfsmec.selection import StabilitySelector

use_style()
rng = np.random.default_rng(0)
n_people = 360
depressed = np.arange(n_people) % 2 == 1
blocks = {
    "EEG": ["theta", "alpha", "beta", "asymmetry", "entropy", "complexity"],
    "audio": ["pitch", "pitch_range", "pauses", "loudness", "speed"],
    "questionnaire": ["sleep", "appetite", "energy", "stress", "activity", "contacts"],
}
columns = [f"{block}__{feature}" for block, features in blocks.items() for feature in features]
X = pd.DataFrame(rng.normal(size=(n_people, len(columns))), columns=columns)
X["EEG__asymmetry"] += 1.0 * depressed
X["audio__pauses"] += 1.5 * depressed
X["questionnaire__energy"] -= 1.0 * depressed
silent = rng.random(n_people) < 1 / 3
X.loc[silent, X.columns.str.startswith("audio__")] = np.nan
y = np.where(depressed, "depressed", "healthy")
print(f"{silent.sum()} of {n_people} people have no audio")

# %%
# Which features, of which blocks?
# --------------------------------

selector = IDFSMEC(n_features_to_select=3).fit(X, y)
for block, weight in zip(selector.channel_names_, selector.channel_weights_, strict=True):
    print(f"{block:14} {weight:.2f}")
print("kept:", ", ".join(selector.get_feature_names_out()))

# %%
# How sure is that?
# -----------------
# The selection is repeated on 100 random halves of the people. The line is the frequency above
# which at most one feature is expected to be kept by chance.

sure = StabilitySelector(selector, n_features_to_select=3, random_state=0).fit(X, y)
figure, axes = plt.subplots(figsize=(7, 4))
order = np.argsort(sure.frequencies_)
colours = dict(zip(blocks, ("C0", "C1", "C2"), strict=True))
axes.barh(
    np.array(columns)[order],
    sure.frequencies_[order],
    color=[colours[columns[j].partition("__")[0]] for j in order],
)
axes.axvline(sure.threshold_, color="0.3", linestyle="--")
axes.set(xlabel="share of halves on which the feature is picked", xlim=(0, 1))
axes.tick_params(axis="y", labelsize=8)
plt.show()

# %%
# Predicting people with and without audio
# ----------------------------------------
# The blocks that a person has add up their votes. Those without audio are told apart by the other
# two blocks, less surely.

train = np.arange(n_people) < 180
model = IDFSMECClassifier().fit(X[train], y[train])
for who, chosen in (("with audio", ~silent), ("without audio", silent)):
    people = chosen & ~train
    accuracy = model.score(X[people], y[people])
    print(f"{who:14} {people.sum():3d} new people, {accuracy:.0%} right")

# %%
# What each block said of one person without audio:

person = X[silent & ~train].iloc[[0]]
for block, vote in zip(model.channel_names_, model.channel_votes(person)[0], strict=True):
    print(f"{block:14} {vote:+.2f}" if np.isfinite(vote) else f"{block:14} missing")
print(model.classes_, model.predict_proba(person).round(2)[0])
