"""Results of an evaluation: read from its store as tidy tables, and exported."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idfsmec._files import replacing, write_csv, write_json
from idfsmec.errors import InputError
from idfsmec.evaluation.clinical import clinical_frame
from idfsmec.evaluation.store import Planned, Store, StoredTable
from idfsmec.metrics import SCORE_METRICS, wilson_interval
from idfsmec.table.columns import split_column

#: Experiments whose tasks have no scores: a method on a whole table, on its halves, an audit.
RANKING, RESAMPLING, AUDIT = "ranking", "resampling", "audit"
TRANSFER = "transfer"
#: Columns of ``scores`` in their order. ``seconds`` is measured, all else is reproducible.
KEYS = ["experiment", "table", "pattern", "rate", "seed", "fold", "method"]
_SCORES = [
    *KEYS,
    *("imputer", "k", "params", "lam", "gamma", "chosen"),
    *("accuracy", "balanced_accuracy", "f1", "roc_auc"),
    *("subject_accuracy", "subject_balanced_accuracy", "subject_roc_auc"),
    *SCORE_METRICS,
    *("seconds", "n_train", "n_train_subjects", "n_test", "n_channels"),
]
#: What tasks find of subjects that are held out, and the coordinates of these tasks.
_OF_SUBJECTS = {
    "held_out": ["subject", "true", "probability"],
    "of_classes": ["subject", "true", "probabilities"],
    "predicted": ["subject", "true", "predicted", "mean"],
}
_WHERE = ["table", "rate", "seed", "fold", "method"]
_TRANSFER = ["method", "harmonized", "trained_on", "tested_on", "seed", "fold"]
_SELECTIONS = [*KEYS, "imputer", "k", "ranking", "n_channels"]
_RANKING = [
    *("table", "rank", "channel", "feature", "score"),
    *("channel_weight", "feature_weight", "fold_frequency", "method"),
]
#: Direction and size of a feature by itself, as far as the number of classes allows.
_SIZES = ("hedges_g", "auc", "eta_squared", "spearman", "pearson")
_EFFECTS = [
    *("n_subjects", "direction"),
    *(f"{size}{end}" for size in _SIZES for end in ("", "_low", "_high")),
    *("p", "q"),
]
#: What scores are averaged within, over folds and repeats.
_CELL = ["table", "pattern", "rate", "method", "imputer"]
_SITE_SCORES = [
    *_CELL,
    *("site", "n_subjects", "subject_accuracy", "low", "high"),
    *("chance", "subject_balanced_accuracy", "subject_roc_auc"),
]


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
        selection alone, ``n_train`` and ``n_test`` (samples), ``n_train_subjects``,
        ``n_channels``.
    selections : DataFrame
        One row per task: its coordinates and ``ranking``, names of features, best first.
    protocol, environment, tables : dict
        How it was done, where it was done, what the tables are.
    ranking : DataFrame
        The proposed method on each whole table as it is: ``table``, ``rank``,
        ``channel``, ``feature``, ``score``, ``channel_weight``, ``feature_weight``,
        ``fold_frequency`` (share of folds in which the feature was selected), ``method``, and each
        feature's own ``direction`` and size (:func:`idfsmec.selection.feature_effects`).
    convergence : dict
        Table name to the objective after each iteration of that fit.
    failures : DataFrame
        Tasks whose last attempt failed, with the text of the traceback.
    held_out : DataFrame
        Subjects held out, where there are two classes, at the lowest missing rate and the setting
        that nested tuning chose: ``table``, ``rate``, ``seed``, ``fold``, ``method``, ``subject``
        (its place among all), ``true`` class and uncalibrated ``probability`` of the second.
    of_classes : DataFrame
        The same where there are more classes: uncalibrated ``probabilities`` of each.
    predicted : DataFrame
        The same where there is a score: the ``true`` and the ``predicted`` one, and the ``mean``
        of the subjects trained on.
    transfer : DataFrame
        Subjects of the experiment ``transfer``: ``method``, ``harmonized``, ``trained_on``,
        ``tested_on``, ``seed``, ``fold``, ``subject``, ``true`` and ``probability``, or the
        ``predicted`` score, as above.
    resampling : dict
        Table name to what :func:`resampling` found; empty where that was not run.
    audit_parts : dict
        Table name to the parts of its audit by name, where one was made.
    verdicts : dict
        Table name to the verdict of an earlier audit, which was kept with it; empty without one.
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
    held_out: pd.DataFrame = field(
        default_factory=lambda: _subjects((), _WHERE, "held_out"), repr=False
    )
    of_classes: pd.DataFrame = field(
        default_factory=lambda: _subjects((), _WHERE, "of_classes"), repr=False
    )
    predicted: pd.DataFrame = field(
        default_factory=lambda: _subjects((), _WHERE, "predicted"), repr=False
    )
    transfer: pd.DataFrame = field(
        default_factory=lambda: _subjects((), _TRANSFER, "held_out"), repr=False
    )
    resampling: dict[str, Any] = field(default_factory=dict, repr=False)
    audit_parts: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    verdicts: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
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
        without_scores = results.resampling or results.audit_parts
        if all(frame.empty for frame in frames) and not without_scores:
            raise InputError(f"{folder} holds no results yet: no task has ended")
        return results

    @classmethod
    def of(cls, store: Store) -> Results:
        """Take all that a store holds now; what has not changed since is not parsed again."""
        if store.parsed is None:
            store.parsed = cls._parse(store)
        protocols = store.parsed.protocol["experiments"]
        parsed: Results = store.parsed
        return replace(parsed, environment=_environment(store, protocols))

    @classmethod
    def _parse(cls, store: Store) -> Results:
        planned, protocols = store.planned(), store.get_meta("protocols") or {}
        folds = [done for done in planned if done.experiment in protocols]
        main = _main_folds(folds, protocols)
        transferred = [done for done in folds if done.experiment == TRANSFER]
        of_scores = any("predicted" in done.result.found for done in transferred)
        scores = _mark_oracle(_scores(folds), protocols)
        selections = _selections(folds, scores["chosen"].to_numpy())
        ranked = {done.table.name: done for done in planned if done.experiment == RANKING}
        tables = store.tables()
        audits: dict[str, dict[str, Any]] = {name: {} for name in tables}
        for done in planned:
            if done.experiment == AUDIT:
                audits[done.table.name][done.task["part"]] = done.result.found
        return cls(
            folder=store.path.parent,
            scores=scores,
            selections=selections,
            protocol=_protocol(protocols, tables),
            environment={},
            tables={name: table.facts for name, table in tables.items()},
            ranking=_ranking(ranked, selections),
            convergence={name: d.result.found.get("history", []) for name, d in ranked.items()},
            failures=pd.DataFrame(store.failures(), columns=[*KEYS, "attempts", "traceback"]),
            transfer=_subjects(transferred, _TRANSFER, "predicted" if of_scores else "held_out"),
            **{key: _subjects(main, _WHERE, key) for key in _OF_SUBJECTS},
            resampling={
                d.table.name: d.result.found for d in planned if d.experiment == RESAMPLING
            },
            audit_parts={name: parts for name, parts in audits.items() if "recording" in parts},
            verdicts=store.get_meta("verdicts") or {},
            methods=store.get_meta("methods") or {},
            data_set=store.get_meta("data_set"),
        )

    def chosen(self, experiment: str = "accuracy") -> pd.DataFrame:
        """Return the rows that tuning picked: one per task under nested tuning."""
        rows = self.scores[(self.scores["experiment"] == experiment) & self.scores["chosen"]]
        return rows.reset_index(drop=True)

    def mean_scores(
        self, metric: str = "subject_balanced_accuracy", experiment: str = "accuracy"
    ) -> pd.DataFrame:
        """Average a score over folds and seeds: one row per table and method, rates as columns.

        Where methods were run with several imputers, there is a row for each.
        """
        chosen = self.chosen(experiment)
        index = ["table", "pattern", "method"]
        if chosen.groupby("method")["imputer"].nunique().max() > 1:
            index.append("imputer")
        return chosen.pivot_table(index=index, columns="rate", values=metric, sort=False)


def of_method(
    rows: pd.DataFrame, table: str, method: str, experiment: str = "accuracy"
) -> pd.DataFrame:
    """Rows of a method on a table in an experiment."""
    wanted = {"experiment": experiment, "table": table, "method": method}
    return rows[np.logical_and.reduce([rows[key] == value for key, value in wanted.items()])]


def picked_setting(scores: pd.DataFrame, table: str, method: str) -> dict[str, Any]:
    """Return the selector's setting that tuning picked most often; empty if nothing was tuned."""
    rows = of_method(scores, table, method)
    picked = rows.loc[rows["chosen"].astype(bool), "params"]
    setting = json.loads(picked.mode().iloc[0]) if len(picked) else {}
    setting.pop("C", None)
    return setting


def _scores(planned: Sequence[Planned]) -> pd.DataFrame:
    """One row per task and k (and setting), in the order of the plans."""
    parameters = cache(json.loads)
    rows = [
        {"experiment": done.experiment, **done.task, **row, "seconds": seconds}
        for done in planned
        for row, seconds in zip(done.result.rows, done.result.seconds, strict=True)
    ]
    present = set().union(*rows)
    columns = [name for name in _SCORES if name not in SCORE_METRICS or name in present]
    scores = pd.DataFrame(rows, columns=columns)
    for name in ("lam", "gamma"):
        values = [parameters(text).get(name) for text in scores["params"]]
        scores[name] = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    numbers = [name for name in columns if name not in {*KEYS, "imputer", "params", "chosen"}]
    whole = ["k", "n_train", "n_train_subjects", "n_test", "n_channels"]
    kinds = dict.fromkeys(numbers, "float64") | dict.fromkeys(whole, "int64") | {"chosen": "bool"}
    return scores.astype(kinds)


def _mark_oracle(scores: pd.DataFrame, protocols: dict[str, Any]) -> pd.DataFrame:
    """Mark the setting that is best on the held-out folds on average, as papers do."""
    for experiment, protocol in protocols.items():
        if protocol["tuning"] != "oracle":
            continue
        rows = scores[scores["experiment"] == experiment]
        setting = [*_CELL, "k", "params"]
        means = rows.groupby(setting, sort=False)[protocol["metric"]].mean()
        best = means.groupby(_CELL, sort=False).idxmax()
        marked = pd.MultiIndex.from_tuples(list(best), names=setting)
        where = pd.MultiIndex.from_frame(rows[setting]).isin(marked)
        scores.loc[rows.index[where], "chosen"] = True
    return scores


def _selections(planned: Sequence[Planned], chosen: np.ndarray) -> pd.DataFrame:
    """Return each task's features in the order of its chosen row, or of its first one."""
    rows, end = [], 0
    for done in planned:
        begin, end = end, end + len(done.result.rows)
        picked = np.flatnonzero(chosen[begin:end])
        row = done.result.rows[picked[0] if picked.size else 0]
        ranking = [done.table.columns[i] for i in done.result.rankings[row["order"]]]
        k = row["k"] if picked.size else None
        rows.append({"experiment": done.experiment, **done.task, "k": k, "ranking": ranking})
    return pd.DataFrame(rows, columns=_SELECTIONS).astype({"k": "Int64"})


def _main_folds(folds: Sequence[Planned], protocols: dict[str, Any]) -> list[Planned]:
    """Return tasks of the main experiment at its lowest rate; none with sample-wise folds."""
    run = protocols.get("accuracy", {"folds": "sample"})
    if run["folds"] == "sample":
        return []
    main = {"rate": min(run["rates"]), "pattern": run["patterns"][0]}
    return [
        done
        for done in folds
        if done.experiment == "accuracy" and main.items() <= done.task.items()
    ]


def _subjects(planned: Iterable[Planned], where: Sequence[str], key: str) -> pd.DataFrame:
    """One row per subject held out: coordinates of the task, and what it has found of them."""
    known = _OF_SUBJECTS[key]
    rows: list[tuple[Any, ...]] = []
    for done in planned:
        if found := done.result.found.get(key):
            values = zip(*map(found.get, known), strict=True)
            rows += [(*map(done.task.get, where), *of) for of in values]
    return pd.DataFrame(rows, columns=[*where, *known])


def _ranking(ranked: dict[str, Planned], selections: pd.DataFrame) -> pd.DataFrame:
    """Return rankings of whole tables, best first, with how often folds selected each feature."""
    frames = []
    for name, done in ranked.items():
        ranking = {key: values for key, values in done.result.found.items() if key != "history"}
        if "rank" not in ranking:
            continue
        columns, method = list(done.table.columns), done.task["method"]
        channels, features = zip(*map(split_column, columns), strict=True)
        folds = of_method(selections, name, method).dropna(subset="k")
        leading = [ranking[:k] for k, ranking in zip(folds["k"], folds["ranking"], strict=True)]
        counts = pd.Series(list(chain.from_iterable(leading)), dtype=object).value_counts()
        share = counts.reindex(columns, fill_value=0).to_numpy() / (len(folds) or np.nan)
        frame = pd.DataFrame(ranking).assign(
            table=name, channel=channels, feature=features, fold_frequency=share, method=method
        )
        frames.append(frame.sort_values("rank", ignore_index=True))
    together = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return together.reindex(columns=[*_RANKING, *(name for name in _EFFECTS if name in together)])


def _protocol(protocols: dict[str, Any], tables: dict[str, StoredTable]) -> dict[str, Any]:
    """The protocol of the main experiment, with those of the others below it."""
    main: dict[str, Any] = protocols.get("accuracy") or next(iter(protocols.values()), {})
    keys = ("n_samples", "n_subjects", "n_classes")
    sizes = {name: {key: table.facts[key] for key in keys} for name, table in tables.items()}
    return {
        **main,
        "n_repeats": len(main.get("seeds", [])),
        "optimistic": main.get("tuning") == "oracle",
        "sizes": sizes,
        "experiments": protocols,
    }


def _environment(store: Store, protocols: dict[str, Any]) -> dict[str, Any]:
    """Where and when the runs were, and how the last one was started."""
    runs, environment = store.get_meta("runs") or [], store.get_meta("environment") or {}
    versions = dict(environment.get("versions") or {})
    for name, counts in store.versions().items():
        if len(counts) > 1:  # workers or parts of a run with different packages
            versions[name] = ", ".join(f"{v} ({n} tasks)" for v, n in counts.most_common())
    return {
        **environment,
        "versions": versions,
        "seeds": sorted({seed for protocol in protocols.values() for seed in protocol["seeds"]}),
        "command": as_typed(runs[-1]["command"]) if runs else "",
        "start": runs[0]["began"] if runs else None,
        "end": runs[-1]["ended"] if runs else None,
        "runs": runs,
    }


def as_typed(argv: Sequence[str]) -> str:
    """Return the command as it is typed again: quoted, with the program's name for its path."""
    if not argv or not argv[0]:
        return ""
    program = Path(argv[0])
    ours = program.stem == "idfsmec" or program.parts[-2:] == ("idfsmec", "__main__.py")
    return shlex.join(["idfsmec", *argv[1:]] if ours else ["python", *argv])


def site_scores(results: Results) -> pd.DataFrame:
    """Return how methods did at each site that was held out; empty if folds were not by site.

    Scores are means over repetitions; see :func:`judge_site` for CI and chance.
    """
    protocol = results.protocol.get("experiments", {}).get("accuracy", {})
    rows: list[dict[Any, Any]] = []
    if protocol.get("folds") == "site":
        scores = ["subject_accuracy", "subject_balanced_accuracy", "subject_roc_auc"]
        means = results.chosen().groupby([*_CELL, "fold"], sort=False)[scores].mean().reset_index()
        for row in means.to_dict("records"):
            known = results.tables[row["table"]].get("sites", [])
            if row["fold"] < len(known) and known[row["fold"]]["labels"]:
                site = known[row["fold"]]
                counts = list(site["labels"].values())
                judged = judge_site(counts, site["n_subjects"], row["subject_accuracy"])
                rows.append({**row, "site": site["site"], **judged})
    return pd.DataFrame(rows, columns=_SITE_SCORES)


def judge_site(counts: Sequence[int], n_subjects: int, accuracy: float) -> dict[str, Any]:
    """Return Wilson's interval of an accuracy at one site, and the share of the larger class."""
    low, high = wilson_interval(accuracy * n_subjects, n_subjects)
    return {
        "n_subjects": n_subjects,
        "low": low,
        "high": high,
        "chance": max(counts) / sum(counts),
    }


def write_files(results: Results) -> None:
    """Write all files of a folder anew; nothing is computed. An audit alone has its own."""
    folder = results.folder
    if not results.protocol["experiments"] and not results.resampling:
        return
    for name, frame in {"results": results.scores, "selections": results.selections}.items():
        with replacing(folder / f"{name}.parquet") as (beside,):
            frame.to_parquet(beside, index=False)
    write_csv(folder / "results.csv", results.scores)
    write_csv(folder / "ranking.csv", results.ranking)
    if (clinical := clinical_frame(results)).empty:
        (folder / "clinical.csv").unlink(missing_ok=True)
    else:
        write_csv(folder / "clinical.csv", clinical)
    if not results.transfer.empty:
        from idfsmec.evaluation.transfer import transfer_matrix

        write_csv(folder / "transfer.csv", transfer_matrix(results))
    for name in ("protocol", "tables", "environment", "convergence", "resampling"):
        write_json(folder / f"{name}.json", getattr(results, name))
    if not (folder / "audit.json").exists():  # an audit replaces it
        write_json(folder / "audit.json", {})
