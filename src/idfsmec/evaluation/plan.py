"""How many participants a study needs, before anything is recorded.

Standard errors follow from the variance of an AUC in the folds of the default protocol, and from
two constants that simulations measured (benchmarks/quality/plan.py). Nothing depends on data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from idfsmec.errors import InputError
from idfsmec.evaluation.statistics import power
from idfsmec.metrics import (
    POWER,
    auc_interval,
    auc_variance,
    detectable_auc,
    expected_critical_p,
    share_interval,
)

#: Folds and repeats of `train`.
_N_SPLITS, _N_REPEATS = 10, 3
#: Variance of the AUC of a fold, in that of an AUC of as many other participants; correlation of
#: the AUCs of two methods in the same fold.
_FOLD_VARIANCE, _FOLD_CORRELATION = 0.9, 0.4
#: Participants of the rarer class that a validation should have (Vergouwe et al., J. Clin.
#: Epidemiol. 58, 475-483, 2005).
_EVENTS = 100
#: On which share of halves a stable feature is selected.
_FREQUENCY = 0.75
#: What participants are needed for, and the targets.
TARGETS = {
    "interval": (0.3, 0.2, 0.1),
    "difference": (0.15, 0.1, 0.05),
    "fact": (0.75, 0.65),
    "validation": (0.2, 0.1),
    "events": (_EVENTS,),
    "feature": (0.75, 0.7, 0.65),
}
_SIZES = (20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1000)
_MOST = 100_000


@dataclass(frozen=True)
class StudyPlan:
    """What a study shows with so many participants, and how many it needs.

    Parameters
    ----------
    auc : float, default=0.75
        AUC that is expected of the model.
    share : float, default=0.5
        Share of patients among the participants.
    n_facts : int, default=12
        Facts of acquisition that the audit tests.
    n_comparisons : int, default=1
        Methods that one is compared with (Holm's correction).
    n_features : int, default=342
        Columns of the table: 18 features of 19 channels.
    n_selected : int, default=20
        Features that are selected.

    Examples
    --------
    >>> plan = StudyPlan(auc=0.75, share=0.25)
    >>> plan.needed.query("aim == 'events'")
           aim  target  participants
    10  events   100.0         400.0
    >>> round(plan.validation_width(400), 2)
    0.11
    """

    auc: float = 0.75
    share: float = 0.5
    n_facts: int = 12
    n_comparisons: int = 1
    n_features: int = 342
    n_selected: int = 20

    def __post_init__(self) -> None:
        """Refuse what no study has."""
        for name, low, high in (("auc", 0.51, 0.99), ("share", 0.01, 0.99)):
            if not low <= getattr(self, name) <= high:
                raise InputError(
                    f"{name}={getattr(self, name)}: give a number from {low} to {high}",
                    argument=name,
                )
        least = {"n_facts": 1, "n_comparisons": 1, "n_selected": 1}
        for name, number in (least | {"n_features": self.n_selected + 1}).items():
            if getattr(self, name) < number:
                raise InputError(
                    f"{name}={getattr(self, name)}: give {number} or more", argument=name
                )

    @property
    def needed(self) -> pd.DataFrame:
        """The fewest ``participants`` for each ``aim`` and ``target``; NaN beyond 100,000."""
        rows = [
            (aim, target, self._fewest(aim, target))
            for aim, targets in TARGETS.items()
            for target in targets
        ]
        return pd.DataFrame(rows, columns=["aim", "target", "participants"])

    @property
    def by_participants(self) -> pd.DataFrame:
        """What studies of 20 to 1000 ``participants`` show.

        ``interval`` and ``validation`` are widths of 95 % CIs, ``difference_0.15`` and so on the
        chance to find this difference, ``fact`` and ``feature`` the smallest AUC that is found or
        selected on most halves.
        """
        differences = {
            f"difference_{size:g}": [self.power(n, size) for n in self._sizes]
            for size in TARGETS["difference"]
        }
        columns = {
            "participants": self._sizes,
            "interval": map(self.interval_width, self._sizes),
            **differences,
            "fact": map(self.detectable_fact, self._sizes),
            "validation": map(self.validation_width, self._sizes),
            "feature": map(self.stable_feature, self._sizes),
        }
        return pd.DataFrame({name: list(values) for name, values in columns.items()})

    def interval_width(self, n: int) -> float:
        """Return the width of the 95 % CI of the cross-validated AUC."""
        error, df = self._error(self.auc, n)
        _, low, high = share_interval(self.auc, error, df, n)
        return high - low

    def power(self, n: int, difference: float) -> float:
        """Return how often a difference between the AUCs of two methods is found at 5 %."""
        error, df = self._error(max(self.auc - difference / 2, 0.5), n)
        error *= np.sqrt(2 * (1 - _FOLD_CORRELATION))
        return power(difference, error, df, self.n_comparisons)

    def detectable_fact(self, n: int) -> float:
        """Return the smallest AUC of a fact that the audit finds with a power of 80 %."""
        critical_p = expected_critical_p(self.n_facts)
        return detectable_auc(n * self.share, n * (1 - self.share), critical_p)

    def validation_width(self, n: int) -> float:
        """Return the width of the 95 % CI of the AUC of a model from elsewhere."""
        n_patients = round(n * self.share)
        low, high = auc_interval(self.auc, n_patients, n - n_patients)
        return high - low

    def stable_feature(self, n: int) -> float:
        """Return the smallest AUC of a feature that is selected on three quarters of halves.

        On half of the participants a t test ranks it; others that tell something have half of the
        places, and it has to be before all but as many of those that tell nothing.
        """
        last_selected = special.ndtri(1 - self.n_selected / (4 * self.n_features))
        t = last_selected + special.ndtri(_FREQUENCY)
        return float(special.ndtr(t / np.sqrt(n * self.share * (1 - self.share))))

    @property
    def _sizes(self) -> list[int]:
        """Numbers of participants of which there are two of each class."""
        return [n for n in _SIZES if n * min(self.share, 1 - self.share) >= 2]

    def _error(self, auc: float, n: int) -> tuple[float, int]:
        """Return the standard error of a cross-validated AUC and its degrees of freedom."""
        k = int(np.clip(n * min(self.share, 1 - self.share), 2, _N_SPLITS))
        variance = auc_variance(auc, n * self.share / k, n * (1 - self.share) / k)
        # As in fold_interval: Nadeau and Bengio.
        factor = 1 / (_N_REPEATS * k) + 1 / (k - 1)
        return float(np.sqrt(factor * _FOLD_VARIANCE * variance)), k - 1

    def _fewest(self, aim: str, target: float) -> float:
        """Return the fewest participants that reach the target."""
        reaches: dict[str, Callable[[int], bool]] = {
            "interval": lambda n: self.interval_width(n) <= target,
            "difference": lambda n: self.power(n, target) >= POWER,
            "fact": lambda n: self.detectable_fact(n) <= target,
            "validation": lambda n: self.validation_width(n) <= target,
            "events": lambda n: n * min(self.share, 1 - self.share) >= target,
            "feature": lambda n: self.stable_feature(n) <= target,
        }
        low, high = int(np.ceil(2 / min(self.share, 1 - self.share))), _MOST
        if not reaches[aim](high):
            return np.nan
        while low < high:  # more participants never show less
            middle = (low + high) // 2
            low, high = (low, middle) if reaches[aim](middle) else (middle + 1, high)
        return float(low)
