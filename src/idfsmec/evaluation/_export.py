"""Export: the store's units as tidy files, with protocol, tables and environment beside them."""

from __future__ import annotations

import json
import os
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

from idfsmec._files import neutralise, replacing
from idfsmec.evaluation._overview import describe_table, whole_table_ranking
from idfsmec.evaluation.chance import chance_bands
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.results import KEYS, SCORES, read_ranking
from idfsmec.evaluation.store import Store
from idfsmec.table import FeatureTable

_PACKAGES = ("idfsmec", "numpy", "scipy", "scikit-learn", "pandas", "joblib", "distributed")


def write(
    store: Store,
    tables: Mapping[str, FeatureTable],
    experiment: str,
    protocol: Protocol,
    run: dict[str, Any],
) -> None:
    """Write all files of a folder anew from its store."""
    folder = store.path.parent
    _keep(store, "tables", {name: describe_table(table) for name, table in tables.items()})
    _keep(store, "columns", {name: list(table.X.columns) for name, table in tables.items()})
    bands = {name: _bands(table) for name, table in tables.items()}
    _keep(store, "chance", bands)
    _keep(store, "protocols", {experiment: asdict(protocol)})
    runs = [*(store.get_meta("runs") or []), {**run, "ended": datetime.now(UTC).isoformat()}]
    store.set_meta("runs", runs)

    scores, selections = tidy(store)
    _replace(folder / "results.parquet", lambda path: scores.to_parquet(path, index=False))
    _replace(folder / "results.csv", lambda path: neutralise(scores).to_csv(path, index=False))
    _replace(folder / "selections.parquet", lambda path: selections.to_parquet(path, index=False))
    _write_ranking(store, tables, scores, selections)
    _write_json(folder / "protocol.json", _protocol(store))
    _write_json(folder / "tables.json", store.get_meta("tables"))
    _write_json(folder / "environment.json", _environment(store, runs))


def tidy(store: Store) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Give scores and selections of all planned units that are done, in a fixed order."""
    planned = store.planned()
    rows = [
        {"experiment": experiment, **unit, **row, "seconds": seconds}
        for experiment, unit, result in planned
        for row, seconds in zip(result.rows, result.seconds, strict=True)
    ]
    scores = pd.DataFrame(rows, columns=SCORES)
    numbers = [name for name in SCORES if name not in {*KEYS, "params", "chosen"}]
    scores[numbers] = scores[numbers].astype(float)
    whole = ["k", "n_train", "n_test", "n_channels"]
    scores[whole] = scores[whole].astype("int64")
    scores["chosen"] = scores["chosen"].astype(bool)
    scores = _mark_oracle(scores, store)
    return scores, _selections(planned, scores["chosen"].to_numpy(), store)


def _selections(planned: list[Any], chosen: np.ndarray, store: Store) -> pd.DataFrame:
    """Give each unit's features in the order of its chosen row, or of its first one."""
    columns = store.get_meta("columns") or {}
    found, end = [], 0
    for experiment, unit, result in planned:
        begin, end = end, end + len(result.rows)
        picked = np.flatnonzero(chosen[begin:end])
        row = result.rows[picked[0] if picked.size else 0]
        names = columns[unit["table"]]
        ranking = [names[place] for place in result.rankings[row["order"]]]
        k = row["k"] if picked.size else None
        found.append({"experiment": experiment, **unit, "k": k, "ranking": ranking})
    selections = pd.DataFrame(found, columns=[*KEYS, "k", "ranking"])
    selections["k"] = selections["k"].astype("Int64")
    return selections


def _mark_oracle(scores: pd.DataFrame, store: Store) -> pd.DataFrame:
    """Mark the setting that is best on the held-out folds on average, as papers do."""
    for experiment, protocol in (store.get_meta("protocols") or {}).items():
        if protocol["tuning"] != "oracle":
            continue
        own = scores[scores["experiment"] == experiment]
        cell = ["table", "pattern", "rate", "method"]
        means = own.groupby([*cell, "k", "params"], sort=False)[protocol["metric"]].mean()
        best = means.groupby(cell, sort=False).idxmax()
        marked = pd.MultiIndex.from_tuples(list(best), names=[*cell, "k", "params"])
        where = pd.MultiIndex.from_frame(own[[*cell, "k", "params"]]).isin(marked)
        scores.loc[own.index[where], "chosen"] = True
    return scores


def _write_ranking(
    store: Store,
    tables: Mapping[str, FeatureTable],
    scores: pd.DataFrame,
    selections: pd.DataFrame,
) -> None:
    folder = store.path.parent
    found = {
        name: whole_table_ranking(table, _of_idfsmec(scores, name), _of_idfsmec(selections, name))
        for name, table in tables.items()
    }
    rankings = {name: ranking.to_dict("list") for name, (ranking, _) in found.items()}
    _keep(store, "rankings", rankings)
    _keep(store, "convergence", {name: history for name, (_, history) in found.items()})
    ranking = neutralise(read_ranking(store))
    _replace(folder / "ranking.csv", lambda path: ranking.to_csv(path, index=False))
    _write_json(folder / "convergence.json", store.get_meta("convergence"))


def _of_idfsmec(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    return frame[
        (frame["experiment"] == "accuracy")
        & (frame["table"] == table)
        & (frame["method"] == "IDFS-MEC")
    ]


def _protocol(store: Store) -> dict[str, Any]:
    """The protocol of the main experiment, with those of the others below it."""
    protocols = store.get_meta("protocols")
    main = protocols.get("accuracy") or next(iter(protocols.values()))
    described = store.get_meta("tables")
    sizes = ("n_samples", "n_subjects", "n_classes")
    return {
        **main,
        "n_repeats": len(main["seeds"]),
        "optimistic": main["tuning"] == "oracle",
        "chance": store.get_meta("chance"),
        "sizes": {name: {key: one[key] for key in sizes} for name, one in described.items()},
        "experiments": protocols,
    }


def _environment(store: Store, runs: list[dict[str, Any]]) -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    protocols = store.get_meta("protocols")
    return {
        "versions": versions,
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "threads": [
                {key: pool.get(key) for key in ("user_api", "internal_api", "version")}
                for pool in threadpool_info()
            ],
        },
        "seeds": sorted({seed for one in protocols.values() for seed in one["seeds"]}),
        "command": as_typed(runs[-1]["command"]),
        "start": runs[0]["began"],
        "end": runs[-1]["ended"],
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


def _bands(table: FeatureTable) -> dict[str, Any]:
    bands = chance_bands(table.y.to_numpy(), table.subjects.to_numpy())
    return {name: band.as_dict() for name, band in bands.items()}


def _keep(store: Store, name: str, new: dict[str, Any]) -> None:
    """Add to what earlier runs in this folder have left."""
    store.set_meta(name, {**(store.get_meta(name) or {}), **new})


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    _replace(path, lambda beside: beside.write_text(text + "\n", "utf-8"))


def _replace(path: Path, write_to: Callable[[Path], Any]) -> None:
    """Write beside and rename, so that nobody ever reads half a file."""
    with replacing(path) as (beside,):
        write_to(beside)
