"""Export: results as files for people, written from the store and never read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from idfsmec._files import neutralise, replacing
from idfsmec.evaluation.results import Results


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
        "audit": {name: one.as_dict() for name, one in results.audits.items()},
    }.items():
        _write_json(folder / f"{name}.json", value)


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    _replace(path, lambda beside: beside.write_text(text + "\n", "utf-8"))


def _replace(path: Path, write_to: Callable[[Path], Any]) -> None:
    """Write beside and rename, so that nobody ever reads half a file."""
    with replacing(path) as (beside,):
        write_to(beside)
