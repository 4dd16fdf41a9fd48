"""Results: what an evaluation has left in its store, read back as tidy tables and exported."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._files import neutralise, replacing
from idfsmec.errors import InputError
from idfsmec.evaluation.statistics import chance_band
from idfsmec.evaluation.store import Planned, Store, StoredTable
from idfsmec.metrics import wilson_interval
from idfsmec.table.columns import split_column

#: Columns of ``scores`` in their order. ``seconds`` is measured, all else is reproducible.
KEYS = ["experiment", "table", "pattern", "rate", "seed", "fold", "method"]
SCORES = [
    *KEYS,
    *("imputer", "k", "params", "lam", "gamma", "chosen"),
    *("accuracy", "balanced_accuracy", "f1", "roc_auc"),
    *("subject_accuracy", "subject_balanced_accuracy", "subject_roc_auc"),
    *("seconds", "n_train", "n_test", "n_channels"),
]
SELECTIONS = [*KEYS, "imputer", "k", "ranking", "n_channels"]
RANKING = [
    *("table", "rank", "channel", "feature", "score"),
    *("channel_weight", "feature_weight", "stability", "method"),
]
#: Direction and size of a feature by itself, as far as the number of classes allows.
EFFECTS = [
    *("n_subjects", "direction"),
    *(
        f"{size}{end}"
        for size in ("hedges_g", "auc", "eta_squared")
        for end in ("", "_low", "_high")
    ),
]
_SITE_CELL = ["table", "pattern", "rate", "method", "imputer"]
SITE_SCORES = [
    *_SITE_CELL,
    *("site", "n_subjects", "subject_accuracy", "low", "high"),
    *("chance_low", "chance_high", "subject_balanced_accuracy", "subject_roc_auc"),
]
#: Experiments whose tasks have no scores: a method on a whole table, and on its halves.
RANKING_EXPERIMENT, RESAMPLING_EXPERIMENT = "ranking", "resampling"
#: Whose tasks are the parts of an audit.
AUDIT_EXPERIMENT = "audit"


@dataclass(frozen=True)
class Results:
    """All results of a folder.

    Parameters
    ----------
    folder : Path
        Where they were read.
    scores : DataFrame
        One row per task and k (and setting, where several are kept): ``experiment``, ``table``,
        ``pattern``, ``rate``, ``seed``, ``fold``, ``method``, ``imputer`` (by name), ``k``,
        ``params`` (JSON), ``lam`` and ``gamma`` where the method has parameters of that name,
        ``chosen`` (the row that tuning picked in that fold), the scores, ``seconds`` of the
        selection alone, ``n_train``, ``n_test``, ``n_channels``.
    selections : DataFrame
        One row per task: its coordinates and ``ranking``, names of features, best first.
    protocol, environment, tables : dict
        How it was done, where it was done, what the tables are.
    ranking : DataFrame
        The proposed method on each whole table as it is: ``table``, ``rank``,
        ``channel``, ``feature``, ``score``, ``channel_weight``, ``feature_weight``,
        ``stability`` (share of folds in which the feature was selected), ``method``, and each
        feature's own ``direction`` and size (:func:`idfsmec.selection.feature_effects`).
    convergence : dict
        Table name to the objective after each iteration of that fit.
    failures : DataFrame
        Tasks whose last attempt failed, with the text of the traceback.
    resampling : dict
        Table name to what :func:`resampling` found; empty where that was not run.
    audit_parts : dict
        Table name to the parts of its audit by name, where one was made.
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
    audit_parts: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    methods: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    data_set: str | None = None

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Read the store that an evaluation has left; exported files are for readers.

        Raises
        ------
        InputError
            The folder holds no results.
        """
        with Store(folder, read_only=True) as store:
            results = cls.of(store)
        frames = (results.scores, results.failures, results.ranking)
        if all(frame.empty for frame in frames) and not (
            results.resampling or results.audit_parts
        ):
            raise InputError(f"{folder} holds no results yet: no task has ended")
        return results

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
            audit_parts=_audit_parts(planned),
            methods=store.get_meta("methods") or {},
            data_set=store.get_meta("data_set"),
        )

    def chosen(self, experiment: str = "accuracy") -> pd.DataFrame:
        """Return the rows that tuning picked: one per task under nested tuning."""
        rows = self.scores[(self.scores["experiment"] == experiment) & self.scores["chosen"]]
        return rows.reset_index(drop=True)

    def mean_scores(
        self, metric: str = "balanced_accuracy", experiment: str = "accuracy"
    ) -> pd.DataFrame:
        """Average a score over folds and seeds: one row per table and method, rates as columns.

        Where methods were run with several imputers, there is a row for each.
        """
        chosen = self.chosen(experiment)
        index = ["table", "pattern", "method"]
        if chosen.groupby("method")["imputer"].nunique().max() > 1:
            index.append("imputer")
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
    """One row per task and k (and setting), in the order of the plans."""
    parameters = functools.cache(json.loads)
    rows = [
        {"experiment": done.experiment, **done.task, **row, "seconds": seconds}
        for done in planned
        for row, seconds in zip(done.result.rows, done.result.seconds, strict=True)
    ]
    scores = pd.DataFrame(rows, columns=SCORES)
    for name in ("lam", "gamma"):
        values = [parameters(text).get(name) for text in scores["params"]]
        scores[name] = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    numbers = [name for name in SCORES if name not in {*KEYS, "imputer", "params", "chosen"}]
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
        cell = ["table", "pattern", "rate", "method", "imputer"]
        means = own.groupby([*cell, "k", "params"], sort=False)[protocol["metric"]].mean()
        best = means.groupby(cell, sort=False).idxmax()
        marked = pd.MultiIndex.from_tuples(list(best), names=[*cell, "k", "params"])
        where = pd.MultiIndex.from_frame(own[[*cell, "k", "params"]]).isin(marked)
        scores.loc[own.index[where], "chosen"] = True
    return scores


def _selections(planned: Sequence[Planned], chosen: np.ndarray) -> pd.DataFrame:
    """Return each task's features in the order of its chosen row, or of its first one."""
    rows, end = [], 0
    for done in planned:
        begin, end = end, end + len(done.result.rows)
        picked = np.flatnonzero(chosen[begin:end])
        row = done.result.rows[picked[0] if picked.size else 0]
        ranking = [done.table.columns[place] for place in done.result.rankings[row["order"]]]
        k = row["k"] if picked.size else None
        rows.append({"experiment": done.experiment, **done.task, "k": k, "ranking": ranking})
    selections = pd.DataFrame(rows, columns=SELECTIONS)
    selections["k"] = selections["k"].astype("Int64")
    return selections


def _ranking(ranked: dict[str, Planned], selections: pd.DataFrame) -> pd.DataFrame:
    """Return rankings of whole tables, best first, with the features' stability in folds."""
    frames = []
    for name, one in ranked.items():
        if "rank" not in one.result.found:
            continue
        split = [split_column(column) for column in one.table.columns]
        method = one.task["method"]
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


def _audit_parts(planned: Sequence[Planned]) -> dict[str, dict[str, Any]]:
    """Parts of audits by table."""
    parts: dict[str, dict[str, Any]] = {}
    for done in planned:
        if done.experiment == AUDIT_EXPERIMENT:
            parts.setdefault(done.table.name, {})[done.task["part"]] = done.result.found
    return {name: own for name, own in parts.items() if "recording" in own}


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


def site_scores(results: Results, experiment: str = "accuracy") -> pd.DataFrame:
    """Say how methods did at each hospital that was held out.

    Parameters
    ----------
    results : Results
    experiment : str, default="accuracy"

    Returns
    -------
    DataFrame
        One row for each table, pattern, rate, method, imputer and site: ``n_subjects``,
        ``subject_accuracy`` with a 95 % interval over its subjects (Wilson: ``low``, ``high``) and
        the band of guessing there (``chance_low``, ``chance_high``),
        ``subject_balanced_accuracy`` and ``subject_roc_auc``; means over repetitions. Empty if
        folds were not by site.
    """
    protocol = results.protocol.get("experiments", {}).get(experiment, {})
    rows: list[dict[str, Any]] = []
    if protocol.get("folds") == "site":
        chosen = results.chosen(experiment)
        scores = ["subject_accuracy", "subject_balanced_accuracy", "subject_roc_auc"]
        means = chosen.groupby([*_SITE_CELL, "fold"], sort=False)[scores].mean().reset_index()
        for row in means.to_dict("records"):
            known = results.tables[row["table"]].get("sites", [])
            if row["fold"] < len(known):
                judged = _judge(known[row["fold"]], row["subject_accuracy"])
                rows.append({str(key): value for key, value in row.items()} | judged)
    return pd.DataFrame(rows, columns=SITE_SCORES)


def judge_site(
    site: str, counts: Sequence[int], n_subjects: int, accuracy: float
) -> dict[str, Any]:
    """Interval of an accuracy at one site, and what guessing gives there.

    Examples
    --------
    >>> judged = judge_site("Oslo", [10, 10], 20, 0.8)
    >>> round(judged["low"], 2), judged["chance_high"]
    (0.58, 0.7)
    """
    low, high = wilson_interval(accuracy * n_subjects, n_subjects)
    band = chance_band([n for n in counts if n])
    return {
        "site": site,
        "n_subjects": n_subjects,
        "low": low,
        "high": high,
        "chance_low": band.low,
        "chance_high": band.high,
    }


def _judge(about: dict[str, Any], accuracy: float) -> dict[str, Any]:
    counts = list(about["labels"].values())
    return judge_site(about["site"], counts, about["n_subjects"], accuracy)


def write_files(results: Results) -> None:
    """Write all files of a folder anew; nothing is computed."""
    folder, scores = results.folder, results.scores
    _replace(folder / "results.parquet", lambda path: scores.to_parquet(path, index=False))
    _replace(folder / "results.csv", lambda path: neutralise(scores).to_csv(path, index=False))
    _replace(
        folder / "selections.parquet",
        lambda path: results.selections.to_parquet(path, index=False),
    )
    _replace(
        folder / "ranking.csv",
        lambda path: neutralise(results.ranking).to_csv(path, index=False),
    )
    for name, value in {
        "protocol": results.protocol,
        "tables": results.tables,
        "environment": results.environment,
        "convergence": results.convergence,
        "resampling": results.resampling,
    }.items():
        write_json(folder / f"{name}.json", value)
    if not (folder / "audit.json").exists():  # an audit replaces it
        write_json(folder / "audit.json", {})


def write_json(path: Path, value: Any) -> None:
    """Write what JSON can hold, for readers."""
    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    _replace(path, lambda beside: beside.write_text(text + "\n", "utf-8"))


def _replace(path: Path, write_to: Callable[[Path], Any]) -> None:
    """Write beside and rename, so that nobody ever reads half a file."""
    with replacing(path) as (beside,):
        write_to(beside)
