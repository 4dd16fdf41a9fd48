"""One method on one fold: rank features, let inner folds choose or score every setting."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec.evaluation.fold_data import FoldData
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.parts import Classifier
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.unit_result import UnitResult
from idfsmec.metrics import METRICS, Scores
from idfsmec.prediction.method import GapMarks
from idfsmec.selection.grid import rank_grid
from idfsmec.selection.svm import Sets
from idfsmec.selection.tuning import Split, SplitScorer, Tuned, middle_cost, tune

#: Ranks with 1 as the best: a setting by number of features by feature.
Ranks = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """What inner folds chose: number of features, cost, setting, and the ranks (1 is best).

    ``inner_ranks`` has a row for each inner fold, ``held_out`` the samples that it did not see.
    """

    k: int
    C: float
    setting: dict[str, Any]
    ranks: Ranks
    inner_ranks: Ranks
    held_out: tuple[Ranks, ...]


def choose(method: Method, data: FoldData, protocol: Protocol, seed: int) -> Choice:
    """Tune a method on the inner folds of training samples, and rank with what was chosen."""
    return _Work(method, data, protocol, seed).choose()


def inner_score(method: Method, data: FoldData, protocol: Protocol, seed: int) -> float:
    """What tuning reaches on the inner folds, by ``protocol.tuned_by``: no test sample is seen."""
    work = _Work(method, data, protocol, seed)
    return work.tune(work.rank_inner()).best.mean


def score_fold(method: Method, data: FoldData, protocol: Protocol, seed: int) -> UnitResult:
    """Select, classify and score with one method on one outer fold."""
    work = _Work(method, data, protocol, seed)
    if protocol.tuning == "nested":
        result = work.nested()
    elif protocol.tuning == "time":
        result = work.timed()
    else:
        result = work.everything()
    sizes = {
        "n_train": data.y_train.size,
        "n_test": data.y_test.size,
        "n_channels": int(data.channel_of.max()) + 1,
    }
    for row in result.rows:
        row.update(sizes)
    return result


def decide_fold(
    method: Method,
    data: FoldData,
    protocol: Protocol,
    seed: int,
    ranks: NDArray[np.intp] | None = None,
) -> NDArray[np.float64]:
    """Decisions on one outer fold, shape (n_test, n_classes), untuned: as methods are by default.

    Parameters
    ----------
    method, data, protocol, seed
        As in :func:`score_fold`; the largest number of features of the protocol is used.
    ranks : ndarray of shape (n_features,), optional
        1 = best. By default what the selector learns from the training samples.
    """
    return _Work(method, data, protocol, seed).decide(ranks)


class _Work:
    """A method at work on a fold."""

    def __init__(self, method: Method, data: FoldData, protocol: Protocol, seed: int) -> None:
        self.method, self.data, self.protocol, self.seed = method, data, protocol, seed
        self.ks = method.ks(protocol.ks, data.channel_of.size)
        self.costs = _costs(method, protocol)
        self._result = UnitResult()

    def nested(self) -> UnitResult:
        """Let inner folds pick the setting and C for each k, and k itself."""
        if len(self.method.settings) * len(self.ks) * len(self.costs) == 1:
            picks, best_k = {self.ks[0]: (0, self.costs[0])}, self.ks[0]
        else:
            tuned = self.tune(self.rank_inner())
            picks = {k: (trial.setting, trial.cost) for k, trial in tuned.picks.items()}
            best_k = tuned.n_features
        scorer = self._scorer(self.data)
        timed = self._rank_picks({k: setting for k, (setting, _) in picks.items()})
        scored = scorer.score_all([(timed[k][0], k, C) for k, (_, C) in picks.items()])
        for (k, (setting, C)), scores in zip(picks.items(), scored, strict=True):
            ranks, seconds = timed[k]
            self._add(setting, k, C, scores, ranks, seconds, k == best_k)
        return self._result

    def tune(self, ranks: Ranks) -> Tuned:
        """Setting and C for each k, and the best k, by ranks on inner folds."""
        return tune(
            [self._scorer(part, [self.protocol.tuned_by]) for part in self.data.inner],
            ranks,
            self.ks,
            default=self.method.default_setting,
            costs=self.costs,
            metric=self.protocol.tuned_by,
        )

    def choose(self) -> Choice:
        """Pick, and rank all training samples and those of every inner fold accordingly."""
        inner = self.rank_inner()
        best = self.tune(inner).best
        k, setting = best.n_features, self.method.settings[best.setting]
        ranks, _ = self._rank_picks({k: best.setting})[k]
        own = inner[:, best.setting, self.ks.index(k)]
        return Choice(k, best.cost, setting, ranks, own, self.data.held_out)

    def everything(self) -> UnitResult:
        """Score all settings on the held-out fold; who is chosen is decided over all folds."""
        costs = self.costs
        if self.protocol.tuning == "grid":
            costs = (middle_cost(costs),)
        began = time.perf_counter()
        ranks = self._rank(self.data, self._build())
        each = (time.perf_counter() - began) / len(self.method.settings)
        settings = range(len(self.method.settings))
        tried = list(itertools.product(settings, range(len(self.ks)), costs))
        asked = [(ranks[setting, place], self.ks[place], C) for setting, place, C in tried]
        scored = self._scorer(self.data).score_all(asked)
        for (setting, place, C), scores in zip(tried, scored, strict=True):
            self._add(setting, self.ks[place], C, scores, ranks[setting, place], each)
        return self._result

    def timed(self) -> UnitResult:
        """Only select, with the first setting, and look at the clock."""
        ((k, (ranks, seconds)),) = self._rank_picks({max(self.ks): 0}).items()
        nothing = dict.fromkeys(METRICS, float("nan"))
        self._add(0, k, float("nan"), nothing, ranks, seconds)
        return self._result

    def decide(self, ranks: Ranks | None) -> NDArray[np.float64]:
        """Only decide, with the default setting and the middle cost."""
        k = max(self.ks)
        if ranks is None:
            ranks, _ = self._rank_picks({k: self.method.default_setting})[k]
        columns = np.flatnonzero(ranks <= k)
        return self._scorer(self.data).decisions(columns, middle_cost(self.costs))

    def rank_inner(self) -> Ranks:
        """Rank with every setting on every inner fold: folds, settings, numbers of features.

        A selector that takes gaps and standardises features itself sees the same in all samples
        of the fold as in those of an inner one: it may share work between inner folds. Not where
        sites are harmonized, which is learned from the samples of each.
        """
        selector = self._build(**self.method.inner)
        same = self.method.takes_gaps and selector.get_params().get("standardize", False)
        same = same and not self.protocol.harmonize
        if same and not self.method.depends_on_k:
            found = rank_grid(
                selector,
                self.data.selecting,
                self.data.y_train,
                self.method.settings,
                held_out=self.data.held_out,
                groups=self.data.people_train,
            )
            return np.broadcast_to(
                found[:, :, None, :], (*found.shape[:2], len(self.ks), found.shape[2])
            )
        return np.stack([self._rank(part, selector) for part in self.data.inner])

    def _rank(self, data: FoldData, selector: Any) -> Ranks:
        """Rank the training samples with every setting, for every number of features."""
        X = self._selecting(data)
        settings, counts = self.method.settings, self.ks if self.method.depends_on_k else [0]
        asked = [{**one, **_count(k)} for one in settings for k in counts]
        groups = data.people_train
        (found,) = rank_grid(selector, X, data.y_train, asked, groups=groups)
        by_count = found.reshape(len(settings), len(counts), -1)
        return np.broadcast_to(by_count, (len(settings), len(self.ks), by_count.shape[2]))

    def _rank_picks(self, picks: dict[int, int]) -> dict[int, tuple[Ranks, float]]:
        """Rank the whole training fold with the setting of each k; also give the seconds."""
        X, found = self._selecting(self.data), {}
        for setting in dict.fromkeys(picks.values()):
            ks = [k for k, own in picks.items() if own == setting]
            counts = ks if self.method.depends_on_k else [0]
            asked = [{**self.method.settings[setting], **_count(k)} for k in counts]
            selector = self._build()
            began = time.perf_counter()
            groups = self.data.people_train
            (ranks,) = rank_grid(selector, X, self.data.y_train, asked, groups=groups)
            seconds = (time.perf_counter() - began) / len(counts)
            ranks = np.broadcast_to(ranks, (len(ks), ranks.shape[1]))
            found.update({k: (own, seconds) for k, own in zip(ks, ranks, strict=True)})
        return {k: found[k] for k in picks}

    def _build(self, **parameters: Any) -> Any:
        return self.method.build(
            n_features_to_select=max(self.ks),
            random_state=self.seed,
            channels=self.data.channel_of,
            **parameters,
        )

    def _selecting(self, data: FoldData) -> NDArray[np.float64]:
        if self.method.takes_gaps:
            return data.selecting
        return data.filled(self.method.filling).selecting

    def _scorer(self, data: FoldData, metrics: Sequence[str] = METRICS) -> SplitScorer:
        classifier, filler = self.method.classifying, self.method.filling
        marked = filler.marks_gaps and not classifier.takes_gaps
        options: dict[str, Any] = {
            "n_classes": data.n_classes,
            "class_weight": self.protocol.class_weight,
            "random_state": self.seed,
        }
        if "groups" in classifier.takes:
            options["groups"] = data.people_train
        classify = _Classify(classifier, marked, options)

        about = str(filler.describe())

        def split() -> Split:  # when it is scored: the next fold may be as large
            filled = data if classifier.takes_gaps or marked else data.filled(filler, about)
            classes = data.y_train, data.y_test
            return Split(filled.train, classes[0], filled.test, classes[1], data.subjects_test)

        channels = data.channel_of if "channels" in classifier.takes else None
        clip = self.protocol.clip
        return SplitScorer(split, classify, metrics, classifier.slope, channels, clip)

    def _add(
        self,
        setting: int,
        k: int,
        C: float,
        scores: Scores,
        ranks: Ranks,
        seconds: float,
        chosen: bool = False,
    ) -> None:
        """Add a row; rows with the same order of features share it."""
        params = dict(self.method.settings[setting])
        if np.isfinite(C):
            params["C"] = C
        ranking = np.argsort(ranks, kind="stable")[: max(self.ks)].tolist()
        known = self._result.rankings
        if ranking not in known:
            known.append(ranking)
        self._result.rows.append(
            {
                "k": k,
                "params": json.dumps(params, sort_keys=True),
                "chosen": chosen,
                **scores,
                "order": known.index(ranking),
            }
        )
        self._result.seconds.append(seconds)


def _count(k: int) -> dict[str, int]:
    """The parameter that says how many features to select; 0 leaves it as it is."""
    return {"n_features_to_select": k} if k else {}


@dataclass(frozen=True)
class _Classify:
    """A classifier as :class:`SplitScorer` takes it; gaps may be marked by more columns."""

    classifier: Classifier
    marked: bool
    options: dict[str, Any]

    @property
    def many(self) -> Callable[..., list[Floats]] | None:
        """How to decide with many sets of columns, where that shares work."""
        return None if self.classifier.many is None else self._many

    def _many(
        self, train: Floats, y: NDArray[np.intp], test: Floats, sets: Sets, **extra: Any
    ) -> list[Floats]:
        many: Any = self.classifier.many
        decide = partial(many, **self.options, **extra)
        if not self.marked:
            return list(decide(train, y, test, sets))
        alike: dict[bytes, list[int]] = {}  # each set marks gaps of channels it has
        for one, (columns, _) in enumerate(sets):
            alike.setdefault(columns.tobytes(), []).append(one)
        found: dict[int, Floats] = {}
        for places in alike.values():
            columns = sets[places[0]][0]
            seen = self._mark(train[:, columns], test[:, columns])
            every = np.arange(seen[0].shape[1])
            own = decide(seen[0], y, seen[1], [(every, sets[one][1]) for one in places])
            found.update(zip(places, own, strict=True))
        return [found[one] for one in range(len(sets))]

    def _mark(self, train: Floats, test: Floats) -> tuple[Floats, Floats]:
        marks = GapMarks.learn(train)
        return marks.add(train), marks.add(test)

    def __call__(
        self, train: Floats, y: NDArray[np.intp], test: Floats, C: float, **extra: Any
    ) -> Floats:
        if self.marked:
            train, test = self._mark(train, test)
        return self.classifier.decide(train, y, test, C=C, **self.options, **extra)


def _costs(method: Method, protocol: Protocol) -> tuple[float, ...]:
    if not method.classifying.has_cost:
        return (float("nan"),)
    return tuple(protocol.svm_costs) if method.costs is None else method.costs
