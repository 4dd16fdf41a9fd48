"""How well a model does on people held out: area, recall, calibration, and what luck gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from idfsmec._random import derive_seed
from idfsmec.evaluation.by_site import judge_people
from idfsmec.evaluation.chance import chance_band
from idfsmec.evaluation.intervals import wilson_interval
from idfsmec.evaluation.protocol import Folds
from idfsmec.metrics import majority
from idfsmec.prediction.model import Model
from idfsmec.table import FeatureTable

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: Shares of the channels that are left to the people held out, for what becomes of the AUC.
SHARES = (1.0, 0.75, 0.5, 0.25)
LEVEL = 0.95
_RESAMPLES = 1000
_MOST_BINS, _LEAST_IN_BIN = 5, 5


@dataclass(frozen=True)
class HeldOutPeople:
    """What was said about people when they were held out."""

    classes: list[Any]
    y: Codes  # (n_people,)
    said: Floats  # (n_repeats, n_shares, n_people, n_classes)
    sites: NDArray | None = None  # (n_people,), where one was held out after the other

    @classmethod
    def of(cls, model: Model, table: FeatureTable, said: Floats, folds: Folds) -> HeldOutPeople:
        """Average over the epochs of each person."""
        _, member = np.unique(table.subjects.to_numpy().astype(str), return_inverse=True)
        codes = np.searchsorted(model.estimator.classes_, table.y.to_numpy())
        true, _ = majority(np.eye(len(model.classes))[codes], codes, member)
        counts = np.bincount(member)
        mean = np.zeros((*said.shape[:2], counts.size, said.shape[3]))
        for sample, person in enumerate(member):
            mean[:, :, person] += said[:, :, sample] / counts[person]
        sites = None
        if folds == "site" and table.sites is not None:
            first = np.unique(member, return_index=True)[1]
            sites = table.sites.astype(str).to_numpy(dtype=str)[first]
        return cls(model.classes, true, mean, sites)

    @property
    def sides(self) -> list[int]:
        """Classes that are held against the rest; of two, one is enough."""
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))

    def draw(self, rng: np.random.Generator) -> Floats:
        """How often each person is drawn, within the classes: (n_resamples, n_people)."""
        counts = np.zeros((_RESAMPLES, self.y.size))
        for code in np.unique(self.y):
            own = np.flatnonzero(self.y == code)
            counts[:, own] = rng.multinomial(own.size, np.full(own.size, 1 / own.size), _RESAMPLES)
        return counts

    def roc_auc(self, counts: Floats, share: int = 0) -> Floats:
        """Mean over repetitions and classes, for people counted so often: (n_resamples,)."""
        found = []
        for code in self.sides:
            own, rest = self.y == code, self.y != code
            wins = np.zeros((own.sum(), rest.sum()))
            for values in self.said[:, share, :, code]:
                difference = values[own][:, None] - values[rest]
                wins += (np.sign(difference) + 1) / 2 / len(self.said)
            pairs = counts[:, own].sum(axis=1) * counts[:, rest].sum(axis=1)
            found.append(((counts[:, own] @ wins) * counts[:, rest]).sum(axis=1) / pairs)
        return np.asarray(np.mean(found, axis=0))

    def balanced_accuracy(self, counts: Floats) -> Floats:
        """The same for the mean recall."""
        right = (self.said[:, 0].argmax(axis=2) == self.y).mean(axis=0)
        recalls = [
            counts[:, own] @ right[own] / counts[:, own].sum(axis=1)
            for own in (self.y == code for code in np.unique(self.y))
        ]
        return np.asarray(np.mean(recalls, axis=0))

    def guessed_auc(self, rng: np.random.Generator) -> Floats:
        """AUC when people exchange their labels, with those of their site: (n_resamples,)."""
        labels = np.tile(self.y, (_RESAMPLES, 1))
        where = np.zeros(self.y.size) if self.sites is None else self.sites
        for site in np.unique(where):
            own = np.flatnonzero(where == site)
            labels[:, own] = rng.permuted(labels[:, own], axis=1)
        found = []
        for code in self.sides:
            ranks = rankdata(self.said[:, 0, :, code], axis=1).mean(axis=0)
            n_own = int((self.y == code).sum())
            sums = (labels == code) @ ranks - n_own * (n_own + 1) / 2
            found.append(sums / (n_own * (self.y.size - n_own)))
        return np.asarray(np.mean(found, axis=0))

    def by_site(self) -> list[dict[str, Any]]:
        """Accuracy at each site that was held out; none where people were."""
        right = (self.said[:, 0].argmax(axis=2) == self.y).mean(axis=0)
        found = []
        for site in [] if self.sites is None else np.unique(self.sites):
            own = self.sites == site
            counts, share = np.bincount(self.y[own]).tolist(), float(right[own].mean())
            judged = judge_people(str(site), counts, int(own.sum()), share)
            found.append({**judged, "accuracy": share})
        return found


def measure(people: HeldOutPeople, seed: int, prior: list[float]) -> dict[str, Any]:
    """All that a model's ``performance`` says of people held out."""
    rng = np.random.default_rng(derive_seed("people", seed))
    draws, once = people.draw(rng), np.ones((1, people.y.size))
    by_share = []
    for place, share in enumerate(SHARES):
        measured = _with_interval(people.roc_auc(once, place), people.roc_auc(draws, place))
        by_share.append({"share": share, **measured})
    low, high = _interval(people.guessed_auc(rng))
    counts = np.bincount(people.y).tolist()
    band = chance_band(counts, metric="balanced_accuracy", level=LEVEL)
    metrics = {
        "roc_auc": {
            **_with_interval(people.roc_auc(once), people.roc_auc(draws)),
            "chance": 0.5,
            "chance_low": low,
            "chance_high": high,
        },
        "balanced_accuracy": {
            **_with_interval(people.balanced_accuracy(once), people.balanced_accuracy(draws)),
            "chance": band.chance,
            "chance_low": band.low,
            "chance_high": band.high,
        },
    }
    mean = people.said[:, 0].mean(axis=0)
    return {
        "level": LEVEL,
        "metrics": metrics,
        "by_share": by_share,
        "calibration": _calibration(people, mean),
        **({"by_site": people.by_site()} if people.sites is not None else {}),
        "held_out": {
            "true": people.y.tolist(),
            "prior": prior,
            "shares": list(SHARES),
            "left": people.said.mean(axis=0).round(6).tolist(),
        },
    }


def _interval(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _with_interval(value: Floats, drawn: Floats) -> dict[str, float]:
    low, high = _interval(drawn)
    return {"mean": float(value[0]), "low": low, "high": high}


def _calibration(people: HeldOutPeople, mean: Floats) -> dict[str, Any]:
    """Of two classes the probability of the second; of more, that of the predicted one."""
    if len(people.classes) == 2:
        label, given, hit = str(people.classes[1]), mean[:, 1], people.y == 1
    else:
        label, given, hit = None, mean.max(axis=1), mean.argmax(axis=1) == people.y
    n_bins = int(np.clip(given.size // _LEAST_IN_BIN, 1, _MOST_BINS))
    bins = []
    for rows in np.array_split(np.argsort(given, kind="stable"), n_bins):
        low, high = wilson_interval(int(hit[rows].sum()), rows.size, LEVEL)
        bins.append(
            {
                "predicted": float(given[rows].mean()),
                "observed": float(hit[rows].mean()),
                "low": low,
                "high": high,
                "n": int(rows.size),
            }
        )
    brier = float(np.mean((given - hit) ** 2))
    return {"class": label, "bins": bins, "brier": brier}
