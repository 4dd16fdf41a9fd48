"""Take from results what figures and texts show: rows, means with CI, chance, labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from idfsmec.evaluation import Results, clinical_scores
from idfsmec.evaluation.statistics import compare_folds, interval_by_fold
from idfsmec.metrics import SCORE_METRICS, holm
from idfsmec.prediction import METHODS
from idfsmec.report.text import describe_protocol
from idfsmec.table.columns import join_columns

#: What a score belongs to: a method in a fold of a table at a missing rate.
TASK = ["table", "pattern", "rate", "seed", "fold", "method"]
#: Name of a method -> ``{"family": ..., "label": ...}``, as in ``Results.methods``.
Methods = Mapping[str, Mapping[str, str]]
#: The family whose first method is emphasised and what the sentences are about.
PROPOSED = "proposed"
#: Columns of an effect size with its CI, and its name.
EFFECT_SIZES = {"hedges_g": "Hedges' g", "eta_squared": "η²", "spearman": "Spearman's ρ"}
#: Frequencies are counts of halves divided by their number: equal ones may differ by rounding.
ROUNDING = 1e-9

_WHOLE_TABLE_SETTINGS = {
    "nested": "setting that nested tuning chose most often",
    "oracle": "setting best on the test folds (optimistic)",
}


def known_methods(methods: Methods | None) -> Methods:
    """Return these families and labels, or those of the registry."""
    if methods is not None:
        return methods
    return {
        name: {"family": method.family, "label": method.label} for name, method in METHODS.items()
    }


def family_of(method: str, methods: Methods) -> str:
    """Return the family of a method; "other" where none is known."""
    return str((methods.get(method) or {}).get("family") or "other")


def label_of(method: object, methods: Methods) -> str:
    """Return what figures and tables call a method; its name by default."""
    return str((methods.get(str(method)) or {}).get("label") or method)


def main_method(names: Iterable[str], methods: Methods) -> str | None:
    """Return the method of main interest: the first one of the family "proposed"."""
    return next((name for name in names if family_of(name, methods) == PROPOSED), None)


def sort_methods(names: Iterable[object], methods: Methods) -> list[str]:
    """Sort methods: proposed first, sanity checks last, each once."""
    order = {PROPOSED: 0, "sanity": 2}
    unique = dict.fromkeys(map(str, names))
    return sorted(unique, key=lambda name: order.get(family_of(name, methods), 1))


def experiment_protocol(results: Results, experiment: str = "accuracy") -> dict[str, Any]:
    """Return the protocol of an experiment: as recorded, else the main one."""
    recorded = (results.protocol.get("experiments") or {}).get(experiment, {})
    merged = {**results.protocol, **recorded}
    if recorded.get("seeds"):
        merged["n_repeats"] = len(recorded["seeds"])
    return merged


def shown_metric(results: Results) -> str:
    """Return the score that is shown: (balanced) accuracy per participant, never per epoch.

    Of a score it is R2 or the correlation that was asked for.
    """
    metric = str(results.protocol.get("metric"))
    if metric in SCORE_METRICS:
        return metric if metric in SCORE_METRICS[:3] else SCORE_METRICS[0]
    plain = metric in ("accuracy", "subject_accuracy")
    return "subject_accuracy" if plain else "subject_balanced_accuracy"


def effect_size(ranking: pd.DataFrame) -> str | None:
    """Return the effect size that a ranking carries, or None where none was recorded."""
    sizes = (name for name in EFFECT_SIZES if name in ranking and ranking[name].notna().any())
    return next(sizes, None)


class View(NamedTuple):
    """What a figure shows of a table: arguments of its drawing, and what no drawing shows.

    ``numbers`` are what is drawn, ``variant`` is the pattern of missing channels or the method
    where each has a figure, ``tested`` is the result of a test in words, ``rows`` are for a table
    beside the figure.
    """

    arguments: dict[str, Any]
    numbers: pd.DataFrame
    variant: str = ""
    tested: str = ""
    rows: list[dict[str, Any]] | None = None


class TableResults:
    """The results of one table, as its figures use them."""

    def __init__(self, results: Results, name: str, *, reliability: float | None = None) -> None:
        #: Of the score, for the largest correlation that can be expected.
        self.reliability = reliability
        self.results, self.name, self.methods = results, name, results.methods
        self.facts: dict[str, Any] = results.tables[name]
        self.main = main_method(results.methods, results.methods)
        self.metric = shown_metric(results)
        #: What is known of the score that is predicted; None for classes.
        self.target: dict[str, Any] | None = self.facts.get("target")
        #: Selections on halves of the participants; empty where there were none.
        self.halves: dict[str, Any] = results.resampling.get(name) or {}
        #: Channels observed in one group or none, which cannot separate groups.
        self.dead = [str(row["channel"]) for row in self.facts["missing_by_class"] if row["dead"]]
        missing = self.facts["missing_by_recording"]
        #: The share of samples in which a recording (row) lacks a channel (column).
        self.missing = pd.DataFrame(missing["share"], missing["subjects"], missing["channels"])
        montage = self.facts["montage"]
        #: The montage that the recordings have in common.
        self.montage: str | None = montage if isinstance(montage, str) else None

    @cached_property
    def ranking(self) -> pd.DataFrame:
        """Features, best first; where known with the direction of effects and their stability."""
        ranking, halves = self.results.ranking, self.halves
        ranking = ranking[ranking["table"] == self.name].sort_values("rank", ignore_index=True)
        if size := effect_size(ranking):
            value, low, high = (ranking[f"{size}{end}"] for end in ("", "_low", "_high"))
            arrows = np.where(value >= 0, "→", "←") if size != "eta_squared" else "↑"
            ranking = ranking.assign(arrow=arrows, excludes_zero=(low > 0) | (high < 0))
        if "frequency" in halves:
            columns = pd.Series(join_columns(ranking["channel"], ranking["feature"]))
            frequency = columns.map(halves["frequency"]).astype(float)
            stable = frequency >= halves["threshold"] - ROUNDING
            ranking = ranking.assign(frequency=frequency, stable=stable)
        return ranking

    @cached_property
    def channel_weights(self) -> pd.Series:
        """The weight of each channel, largest first; empty for methods that give none."""
        weights = self.ranking.groupby("channel", sort=False)["channel_weight"].first().dropna()
        return weights.sort_values(ascending=False, kind="stable")

    @cached_property
    def clinical(self) -> dict[str, Any] | None:
        """Clinical scores, where there are two classes."""
        return clinical_scores(self.results, self.name)

    def label(self, method: object) -> str:
        """Return what figures and sentences call a method."""
        return label_of(method, self.methods)

    def method_of(self, names: Iterable[str]) -> str:
        """Return the method of main interest if it is among the names, else the first of them."""
        names = list(names)
        return next((name for name in names if name == self.main), names[0])

    def all_rows(self, experiment: str = "accuracy") -> pd.DataFrame:
        """Return the rows of an experiment."""
        scores = self.results.scores
        return scores[(scores["experiment"] == experiment) & (scores["table"] == self.name)]

    def rows(self, experiment: str = "accuracy") -> pd.DataFrame:
        """Return the rows of an experiment that have the score that is shown."""
        return self.all_rows(experiment).dropna(subset=[self.metric])

    @property
    def chance(self) -> float | None:
        """The chance level of the score that is shown, where it follows from the classes."""
        if self.target is not None:
            return 0.0
        balanced = self.metric == "subject_balanced_accuracy"
        return 1 / len(self.facts["labels"]) if balanced else None

    def note(self, experiment: str = "accuracy") -> str:
        """Return the line under a figure's title: folds and tuning of the experiment."""
        return describe_protocol(experiment_protocol(self.results, experiment))

    def by_pattern(self) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
        """Split accuracies by pattern (unnamed if alone), with what figures of accuracy need."""
        patterns = self.rows().groupby("pattern", sort=False)
        for pattern, rows in patterns:
            name, note = "", self.note()
            if len(patterns) > 1:
                name, note = str(pattern), f"{note} · channels missing by pattern {pattern}"
            yield name, rows, {"methods": self.methods, "metric": self.metric, "note": note}

    def whole_table_note(self, selected: str = "") -> str:
        """Return the line under a figure's title for a ranking, which uses no folds."""
        ranked_by = self.ranking["method"]
        method = self.main if ranked_by.empty else str(ranked_by.iloc[0])
        rows = self.all_rows()
        settings = "default settings"
        if rows.loc[rows["method"] == method, "chosen"].astype(bool).any():
            tuning = str(experiment_protocol(self.results).get("tuning"))
            settings = _WHOLE_TABLE_SETTINGS.get(tuning, "settings as chosen")
        return f"{selected or f'{method} on the whole table'}, no folds\n{settings}"

    def published(self, experiment: str) -> dict[str, float]:
        """Return the paper's values by method, where its data set was reproduced as this table."""
        if self.name != self.results.data_set:
            return {}
        from idfsmec.paper import published  # imports readers of recordings; few reports need it

        return published(experiment, self.name)


def task_scores(
    scores: pd.DataFrame, metric: str, by: Sequence[str] = (), *, chosen: bool | None = None
) -> pd.DataFrame:
    """Average scores to one ``value`` per task (and per value of ``by``).

    Only rows that tuning chose count where ``chosen``, by default where ``by`` is empty; all rows
    of a task count where tuning chose none.
    """
    rows = scores.dropna(subset=[metric, *by])
    if (not by if chosen is None else chosen) and not rows.empty and "chosen" in rows:
        picked = rows["chosen"].fillna(False).astype(bool)
        rows = rows[picked | ~picked.groupby([rows[column] for column in TASK]).transform("any")]
    grouped = rows.groupby([*TASK, *by], as_index=False, sort=False)
    means = grouped[[metric, "n_train_subjects"]].mean().rename(columns={metric: "value"})
    # Those of a score do not lie from 0 to 1.
    return means.assign(n_train_subjects=np.nan) if metric in SCORE_METRICS else means


def intervals(tasks: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Compute mean and 95 % CI over folds and repeats for each value of ``by``, as they come.

    A fold counts once: its values at several missing rates are averaged first.
    """
    rows = []
    for key, group in tasks.groupby(list(by), sort=False):
        folds = group.groupby(["seed", "fold"], sort=False)["value"].mean()
        n_train = group["n_train_subjects"].mean()
        ci = interval_by_fold(folds, None if np.isnan(n_train) else n_train)
        rows.append([*key, ci.mean, ci.low, ci.high, ci.n])
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "n"])


def differences(tasks: pd.DataFrame, reference: Any, column: str = "method") -> pd.DataFrame:
    """Subtract each other value of a column from the reference's, paired by fold, with 95 % CI.

    Adds ``p_holm`` and ``significant``: at 5 % after Holm's correction for all of them.
    """
    wide = tasks.pivot_table(index=["seed", "fold"], columns=column, values="value")
    return add_significance(compare_folds(wide, reference).rename(columns={"method": column}))


def add_significance(paired: pd.DataFrame) -> pd.DataFrame:
    """Add ``p_holm`` and ``significant`` to differences, with Holm's correction for all rows."""
    p = paired["p_value"].astype(float)
    # A rounding error between two equal scores is no difference.
    p = p.mask(p.notna() & (paired["difference"].astype(float).abs() <= 1e-9), 1.0)
    corrected = pd.Series(np.nan, index=p.index)
    if p.notna().any():
        corrected[p.notna()] = holm(p.dropna())
    return paired.assign(p_holm=corrected, significant=corrected < 0.05)


def lowest_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep rows at the lowest missing rate, of the first pattern."""
    lowest = np.isclose(rows["rate"], rows["rate"].min())
    first: str = rows["pattern"][lowest].iloc[0]
    return rows[lowest & rows["pattern"].eq(first)]
