"""Results: what an evaluation has left in its store, read back as tidy tables."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._columns import split_column
from idfsmec.audit.verdict import Audit, put_together
from idfsmec.errors import InputError
from idfsmec.evaluation.store import Planned, Store, StoredTable

#: Columns of ``scores`` in their order. ``seconds`` is measured, all else is reproducible.
KEYS = ["experiment", "table", "pattern", "rate", "seed", "fold", "method"]
SCORES = [
    *KEYS,
    *("filler", "k", "params", "lam", "gamma", "chosen"),
    *("accuracy", "balanced_accuracy", "f1", "roc_auc"),
    *("subject_accuracy", "subject_balanced_accuracy", "subject_roc_auc"),
    *("seconds", "n_train", "n_test", "n_channels"),
]
SELECTIONS = [*KEYS, "filler", "k", "ranking", "n_channels"]
RANKING = [
    *("table", "rank", "channel", "feature", "score"),
    *("channel_weight", "feature_weight", "stability", "method"),
]
#: Direction and size of a feature by itself, as far as the number of classes allows.
EFFECTS = [
    *("n_people", "direction"),
    *(
        f"{size}{end}"
        for size in ("hedges_g", "auc", "eta_squared")
        for end in ("", "_low", "_high")
    ),
]
#: Experiments whose units have no scores: a method on a whole table, and on its halves.
RANKING_EXPERIMENT, RESAMPLING_EXPERIMENT = "ranking", "resampling"
#: Whose units are the parts of an audit.
AUDIT_EXPERIMENT = "audit"


@dataclass(frozen=True)
class Results:
    """All results of a folder.

    Parameters
    ----------
    folder : Path
        Where they were read.
    scores : DataFrame
        One row per unit and k (and setting, where several are kept): ``experiment``, ``table``,
        ``pattern``, ``rate``, ``seed``, ``fold``, ``method``, ``filler`` (by name), ``k``,
        ``params`` (JSON), ``lam`` and ``gamma`` where the method has parameters of that name,
        ``chosen`` (the row that tuning picked in that fold), the scores, ``seconds`` of the
        selection alone, ``n_train``, ``n_test``, ``n_channels``.
    selections : DataFrame
        One row per unit: its coordinates and ``ranking``, names of features, best first.
    protocol, environment, tables : dict
        How it was done, where it was done, what the tables are.
    ranking : DataFrame
        The proposed method on each whole table without artificial gaps: ``table``, ``rank``,
        ``channel``, ``feature``, ``score``, ``channel_weight``, ``feature_weight``,
        ``stability`` (share of folds in which the feature was selected), ``method``, and each
        feature's own ``direction`` and size (:func:`idfsmec.selection.feature_effects`).
    convergence : dict
        Table name to the objective after each iteration of that fit.
    failures : DataFrame
        Units whose last attempt failed, with the text of the traceback.
    resampling : dict
        Table name to what :func:`resampling` found; empty where that was not run.
    audits : dict
        Table name to its :class:`Audit`, where one was made.
    methods : dict
        Method name to its ``family``, ``label`` and ``classifier``, as they were when it ran.
    data_set : str, optional
        Which of the paper's data sets was reproduced.
    """

    folder: Path
    scores: pd.DataFrame = field(repr=False)
    selections: pd.DataFrame = field(repr=False)
    protocol: dict[str, Any] = field(repr=False)
    environment: dict[str, Any] = field(repr=False)
    tables: dict[str, Any] = field(repr=False)
    ranking: pd.DataFrame = field(repr=False)
    convergence: dict[str, list[float]] = field(repr=False)
    failures: pd.DataFrame = field(repr=False)
    resampling: dict[str, Any] = field(default_factory=dict, repr=False)
    audits: dict[str, Audit] = field(default_factory=dict, repr=False)
    methods: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    data_set: str | None = None

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Read the store that an evaluation has left; exported files are for people.

        Raises
        ------
        InputError
            The folder holds no results.
        """
        with Store(folder, read_only=True) as store:
            found = cls.of(store)
        frames = (found.scores, found.failures, found.ranking)
        if all(frame.empty for frame in frames) and not (found.resampling or found.audits):
            raise InputError(f"{folder} holds no results yet: no unit has ended")
        return found

    @classmethod
    def of(cls, store: Store) -> Results:
        """Take all that a store holds now."""
        planned, protocols = store.planned(), store.get_meta("protocols") or {}
        folds = [one for one in planned if one.experiment in protocols]
        scores = _mark_oracle(_scores(folds), protocols)
        selections = _selections(folds, scores["chosen"].to_numpy())
        ranked = {one.table.name: one for one in planned if one.experiment == RANKING_EXPERIMENT}
        tables = store.tables()
        return cls(
            folder=store.path.parent,
            scores=scores,
            selections=selections,
            protocol=_protocol(protocols, tables),
            environment=_environment(store, protocols),
            tables={name: table.about for name, table in tables.items()},
            ranking=_ranking(ranked, selections),
            convergence={
                name: one.result.found.get("history", []) for name, one in ranked.items()
            },
            failures=pd.DataFrame(store.failures(), columns=[*KEYS, "attempts", "traceback"]),
            resampling={
                one.table.name: one.result.found
                for one in planned
                if one.experiment == RESAMPLING_EXPERIMENT
            },
            audits=_audits(planned),
            methods=store.get_meta("methods") or {},
            data_set=store.get_meta("data_set"),
        )

    def chosen(self, experiment: str = "accuracy") -> pd.DataFrame:
        """Rows that tuning picked: one per unit under nested tuning."""
        rows = self.scores[(self.scores["experiment"] == experiment) & self.scores["chosen"]]
        return rows.reset_index(drop=True)

    def mean_scores(
        self, metric: str = "balanced_accuracy", experiment: str = "accuracy"
    ) -> pd.DataFrame:
        """Mean of a score over folds and seeds: one row per table and method, rates as columns.

        Where methods were run with several fillers, there is a row for each.
        """
        chosen = self.chosen(experiment)
        index = ["table", "pattern", "method"]
        if chosen.groupby("method")["filler"].nunique().max() > 1:
            index.append("filler")
        return chosen.pivot_table(index=index, columns="rate", values=metric, sort=False)


def picked_setting(scores: pd.DataFrame, table: str, method: str) -> dict[str, Any]:
    """Parameters of the selector that tuning picked most often; none where nothing was tuned."""
    own = (
        (scores["experiment"] == "accuracy")
        & (scores["table"] == table)
        & (scores["method"] == method)
    )
    picked = scores.loc[own & scores["chosen"].astype(bool), "params"]
    setting = json.loads(picked.mode().iloc[0]) if len(picked) else {}
    setting.pop("C", None)
    return setting


def _scores(planned: Sequence[Planned]) -> pd.DataFrame:
    """One row per unit and k (and setting), in the order of the plans."""
    parameters = functools.cache(json.loads)
    rows = [
        {"experiment": one.experiment, "filler": "mean", **one.unit, **row, "seconds": seconds}
        for one in planned  # there was one filler before units named theirs
        for row, seconds in zip(one.result.rows, one.result.seconds, strict=True)
    ]
    scores = pd.DataFrame(rows, columns=SCORES)
    for name in ("lam", "gamma"):
        values = [parameters(text).get(name) for text in scores["params"]]
        scores[name] = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    numbers = [name for name in SCORES if name not in {*KEYS, "filler", "params", "chosen"}]
    scores[numbers] = scores[numbers].astype(float)
    whole = ["k", "n_train", "n_test", "n_channels"]
    scores[whole] = scores[whole].astype("int64")
    scores["chosen"] = scores["chosen"].astype(bool)
    return scores


def _mark_oracle(scores: pd.DataFrame, protocols: dict[str, Any]) -> pd.DataFrame:
    """Mark the setting that is best on the held-out folds on average, as papers do."""
    for experiment, protocol in protocols.items():
        if protocol["tuning"] != "oracle":
            continue
        own = scores[scores["experiment"] == experiment]
        cell = ["table", "pattern", "rate", "method", "filler"]
        means = own.groupby([*cell, "k", "params"], sort=False)[protocol["metric"]].mean()
        best = means.groupby(cell, sort=False).idxmax()
        marked = pd.MultiIndex.from_tuples(list(best), names=[*cell, "k", "params"])
        where = pd.MultiIndex.from_frame(own[[*cell, "k", "params"]]).isin(marked)
        scores.loc[own.index[where], "chosen"] = True
    return scores


def _selections(planned: Sequence[Planned], chosen: np.ndarray) -> pd.DataFrame:
    """Give each unit's features in the order of its chosen row, or of its first one."""
    found, end = [], 0
    for one in planned:
        begin, end = end, end + len(one.result.rows)
        picked = np.flatnonzero(chosen[begin:end])
        row = one.result.rows[picked[0] if picked.size else 0]
        ranking = [one.table.columns[place] for place in one.result.rankings[row["order"]]]
        k = row["k"] if picked.size else None
        where = {"experiment": one.experiment, "filler": "mean", **one.unit}
        found.append({**where, "k": k, "ranking": ranking})
    selections = pd.DataFrame(found, columns=SELECTIONS)
    selections["k"] = selections["k"].astype("Int64")
    return selections


def _ranking(ranked: dict[str, Planned], selections: pd.DataFrame) -> pd.DataFrame:
    """Rankings of all whole tables, best first, with the stability of the features in folds."""
    frames = []
    for name, one in ranked.items():
        if "rank" not in one.result.found:
            continue
        split = [split_column(column) for column in one.table.columns]
        method = one.unit["method"]
        own = selections[
            (selections["experiment"] == "accuracy")
            & (selections["table"] == name)
            & (selections["method"] == method)
        ]
        frame = pd.DataFrame(
            {
                **{key: values for key, values in one.result.found.items() if key != "history"},
                "table": name,
                "channel": [channel for channel, _ in split],
                "feature": [feature for _, feature in split],
                "stability": _selected_share(one.table.columns, own),
                "method": method,
            }
        )
        frames.append(frame.sort_values("rank", ignore_index=True))
    together = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return together.reindex(columns=[*RANKING, *(one for one in EFFECTS if one in together)])


def _selected_share(columns: Sequence[str], selections: pd.DataFrame) -> np.ndarray:
    """Share of folds in which a feature was among those that tuning kept."""
    place = {column: i for i, column in enumerate(columns)}
    share = np.zeros(len(place))
    usable = selections[selections["k"].notna()]
    if usable.empty:
        return np.full(len(place), np.nan)
    for k, ranking in zip(usable["k"], usable["ranking"], strict=True):
        share[[place[name] for name in ranking[: int(k)]]] += 1
    return share / len(usable)


def _audits(planned: Sequence[Planned]) -> dict[str, Audit]:
    """Parts of audits, put together by table."""
    parts: dict[str, dict[str, Any]] = {}
    for one in planned:
        if one.experiment == AUDIT_EXPERIMENT:
            parts.setdefault(one.table.name, {})[one.unit["part"]] = one.result.found
    return {name: put_together(own) for name, own in parts.items() if "recording" in own}


def _protocol(protocols: dict[str, Any], tables: dict[str, StoredTable]) -> dict[str, Any]:
    """The protocol of the main experiment, with those of the others below it."""
    main: dict[str, Any] = protocols.get("accuracy") or next(iter(protocols.values()), {})
    sizes = ("n_samples", "n_subjects", "n_classes")
    return {
        **main,
        "n_repeats": len(main.get("seeds", [])),
        "optimistic": main.get("tuning") == "oracle",
        "chance": {
            name: table.chance.get("by_site", table.chance)
            if main.get("folds") == "site"
            else table.chance
            for name, table in tables.items()
        },
        "sizes": {
            name: {key: table.about[key] for key in sizes} for name, table in tables.items()
        },
        "experiments": protocols,
    }


def _environment(store: Store, protocols: dict[str, Any]) -> dict[str, Any]:
    """Where and when the runs were, and how the last one was started."""
    runs = store.get_meta("runs") or []
    seeds = {seed for one in protocols.values() for seed in one["seeds"]}
    return {
        **(store.get_meta("environment") or {}),
        "seeds": sorted(seeds),
        "command": as_typed(runs[-1]["command"]) if runs else "",
        "start": runs[0]["began"] if runs else None,
        "end": runs[-1]["ended"] if runs else None,
        "runs": runs,
    }


def as_typed(argv: Sequence[str]) -> str:
    """The command as one types it again: quoted, and with the program's name for its path.

    Examples
    --------
    >>> as_typed(["/opt/lib/idfsmec/__main__.py", "benchmark", "--methods", "mRMR,ANOVA F"])
    "idfsmec benchmark --methods 'mRMR,ANOVA F'"
    >>> as_typed(["study.py", "--fast"])
    'python study.py --fast'
    """
    if not argv or not argv[0]:
        return ""
    program = Path(argv[0])
    own = program.stem == "idfsmec" or program.parts[-2:] == ("idfsmec", "__main__.py")
    return shlex.join(["idfsmec", *argv[1:]] if own else ["python", *argv])
