"""
EEG, audio and a questionnaire in one table
===========================================

A channel is any block of features that is missing together. Here a third of the participants have no audio.
No value is imputed and no participant is dropped.
"""

# %%
# The block is the part of a column name before the last ``__``. One feature of each block differs between the
# groups. The data are simulated, with one sample per participant.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from idfsmec import IDFSMEC, FeatureTable
from idfsmec.prediction import IDFSMECClassifier
from idfsmec.report import use_style
from idfsmec.selection import StabilitySelector

use_style()
rng = np.random.default_rng(0)
n_subjects = 360
depressed = np.arange(n_subjects) % 2 == 1
blocks = {
    "EEG": ["theta", "alpha", "beta", "asymmetry", "entropy", "complexity"],
    "audio": ["pitch", "pitch_range", "pauses", "loudness", "speed", "jitter"],
    "questionnaire": ["sleep", "appetite", "energy", "stress", "activity", "contacts"],
}
columns = [f"{block}__{feature}" for block, features in blocks.items() for feature in features]
X = pd.DataFrame(rng.normal(size=(n_subjects, len(columns))), columns=columns)
X["EEG__asymmetry"] += 1.0 * depressed
X["audio__pauses"] += 1.5 * depressed
X["questionnaire__energy"] -= 1.0 * depressed
no_audio = rng.random(n_subjects) < 1 / 3
X.loc[no_audio, X.columns.str.startswith("audio__")] = np.nan
y = np.where(depressed, "depressed", "healthy")
table = FeatureTable(X, y, [f"s{i:03}" for i in range(n_subjects)])
print(table)

# %%
# Weights of the blocks, and the features that are kept.
selector = IDFSMEC(n_features_to_select=3).fit(table.X, table.y)
for block, weight in zip(selector.channel_names_, selector.channel_weights_, strict=True):
    print(f"{block:14} {weight:.2f}")
print("kept:", ", ".join(selector.get_feature_names_out()))

# %%
# Stability: the selection is repeated on 100 random halves of the participants. Above the dashed line at most
# one false selection is expected.
stability = StabilitySelector(selector, n_features_to_select=3, random_state=0).fit(
    table.X, table.y, groups=table.subjects
)
figure, axes = plt.subplots(figsize=(7, 4))
order = np.argsort(stability.frequencies_)
colours = dict(zip(blocks, ("C0", "C1", "C2"), strict=True))
axes.barh(
    np.array(columns)[order],
    stability.frequencies_[order],
    color=[colours[columns[j].partition("__")[0]] for j in order],
)
axes.axvline(stability.threshold_, color="0.3", linestyle="--")
axes.set(xlabel="share of halves on which the feature is selected", xlim=(0, 1))
axes.tick_params(axis="y", labelsize=8)
plt.show()

# %%
# Prediction of new participants, with and without audio.
train = np.arange(n_subjects) < 180
model = IDFSMECClassifier().fit(X[train], y[train], groups=table.subjects[train])
for name, mask in (("with audio", ~no_audio), ("without audio", no_audio)):
    new = mask & ~train
    accuracy = model.score(X[new], y[new])
    print(f"{name:14} {new.sum():3d} new participants, accuracy {accuracy:.0%}")

# %%
# The contributions of the blocks for a participant without audio, in log odds.
sample = X[no_audio & ~train].iloc[[0]]
for block, vote in zip(model.channel_names_, model.channel_votes(sample)[0], strict=True):
    print(f"{block:14} {vote:+.2f}" if np.isfinite(vote) else f"{block:14} missing")
print(model.classes_, model.predict_proba(sample).round(2)[0])
