"""Results: what an evaluation has left in its folder, read back as tidy tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from idfsmec.errors import InputError
from idfsmec.evaluation.store import Store

#: File of what :func:`idfsmec.evaluation.resampling` found.
RESAMPLING = "resampling.json"

#: Columns of ``scores`` in their order. ``seconds`` is measured, all else is reproducible.
KEYS = ["experiment", "table", "pattern", "rate", "seed", "fold", "method"]
SCORES = [
    *KEYS,
    *("k", "params", "lam", "gamma", "chosen"),
    *("accuracy", "balanced_accuracy", "f1", "roc_auc"),
    *("subject_accuracy", "subject_balanced_accuracy"),
    *("seconds", "n_train", "n_test", "n_channels"),
]
RANKING = [
    *("table", "rank", "channel", "feature", "score"),
    *("channel_weight", "feature_weight", "stability"),
]


@dataclass(frozen=True)
class Results:
    """All results of a folder.

    Parameters
    ----------
    folder : Path
        Where they were read.
    scores : DataFrame
        One row per unit and k (and setting, where several are kept): ``experiment``, ``table``,
        ``pattern``, ``rate``, ``seed``, ``fold``, ``method``, ``k``, ``params`` (JSON), ``lam``,
        ``gamma``, ``chosen`` (the row that tuning picked in that fold), the scores,
        ``seconds`` of the selection alone, ``n_train``, ``n_test``, ``n_channels``.
    selections : DataFrame
        One row per unit: its coordinates and ``ranking``, names of features, best first.
    protocol, environment, tables : dict
        How it was done, where it was done, what the tables are.
    ranking : DataFrame
        IDFS-MEC on each whole table without artificial gaps: ``table``, ``rank``, ``channel``,
        ``feature``, ``score``, ``channel_weight``, ``feature_weight``, ``stability`` (share of
        folds in which the feature was selected).
    convergence : dict
        Table name to the objective after each iteration of that fit.
    failures : DataFrame
        Units whose last attempt failed, with the text of the traceback.
    resampling : dict
        Table name to what :func:`resampling` found; empty where that was not run.
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

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Read the files that an evaluation has written.

        Raises
        ------
        InputError
            The folder holds no results.
        """
        folder = Path(folder)
        wanted = ("results.parquet", "selections.parquet", "ranking.csv", "tables.json")
        for name in wanted:
            if not (folder / name).is_file():
                raise InputError(
                    f"{folder} holds no results: there is no {name} in it; make some with "
                    f"`idfsmec benchmark TABLE --out {folder}`"
                )
        with Store(folder, read_only=True) as store:
            failures, ranking = store.failures(), read_ranking(store)
        again = folder / RESAMPLING
        return cls(
            folder=folder,
            scores=_load(folder / "results.parquet", pd.read_parquet),
            selections=_load(folder / "selections.parquet", pd.read_parquet),
            protocol=_load(folder / "protocol.json", _read_json),
            environment=_load(folder / "environment.json", _read_json),
            tables=_load(folder / "tables.json", _read_json),
            ranking=ranking,
            convergence=_load(folder / "convergence.json", _read_json),
            failures=pd.DataFrame(failures, columns=[*KEYS, "attempts", "traceback"]),
            resampling=_load(again, _read_json) if again.is_file() else {},
        )

    def chosen(self, experiment: str = "accuracy") -> pd.DataFrame:
        """Rows that tuning picked: one per unit under nested tuning."""
        rows = self.scores[(self.scores["experiment"] == experiment) & self.scores["chosen"]]
        return rows.reset_index(drop=True)

    def mean_scores(
        self, metric: str = "balanced_accuracy", experiment: str = "accuracy"
    ) -> pd.DataFrame:
        """Mean of a score over folds and seeds: one row per table and method, rates as columns."""
        return self.chosen(experiment).pivot_table(
            index=["table", "pattern", "method"], columns="rate", values=metric, sort=False
        )


def _load(path: Path, read: Callable[[Path], Any]) -> Any:
    """Read one file of a folder; a damaged one is named, and the store can make it anew."""
    try:
        return read(path)
    except (OSError, ValueError, RecursionError) as error:  # pyarrow's and json's among them
        raise InputError(
            f"{path} cannot be read ({' '.join(str(error).split())[:200]}). Give the command that "
            "made this folder again: it writes the file anew from the store, and computes nothing."
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"a {type(found).__name__} instead of an object")
    return found


def read_ranking(store: Store) -> pd.DataFrame:
    """Rankings of all whole tables, from the store: a CSV file takes a channel "NA" for a gap."""
    frames = [
        pd.DataFrame(ranking).assign(table=name)
        for name, ranking in (store.get_meta("rankings") or {}).items()
    ]
    together = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return together.reindex(columns=RANKING)
