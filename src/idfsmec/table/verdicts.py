"""Verdicts of audits, stored beside a table for its content, as commands look them up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from idfsmec._files import write_json
from idfsmec.errors import InputError
from idfsmec.table.feature_table import FeatureTable, table_digest

#: Shown in place of a verdict.
NOT_AUDITED = {
    "level": "grey",
    "title": "Not audited",
    "verdict": "Whether the groups differ in who or how was recorded was not tested.",
}


def store_verdict(path: Path, table: FeatureTable, verdict: Mapping[str, str]) -> Path:
    """Store a verdict in a file beside the table, for its present content."""
    file = _file_of(path)
    write_json(file, _read_verdicts(file) | {table_digest(table): dict(verdict)})
    return file


def stored_verdict(path: Path, table: FeatureTable) -> dict[str, str]:
    """Return the stored verdict for this content of a table; empty where there is none."""
    verdicts = _read_verdicts(_file_of(path))
    return verdicts.get(table_digest(table), {}) if verdicts else {}


def _file_of(path: Path) -> Path:
    return path.with_name(path.name + ".audit.json")


def _read_verdicts(file: Path) -> dict[str, dict[str, str]]:
    """Return the verdicts of a file by the content of their tables."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return {
            str(digest): {part: str(verdict[part]) for part in NOT_AUDITED}
            for digest, verdict in stored.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: is no list of verdicts; remove it, and audit again.") from error
