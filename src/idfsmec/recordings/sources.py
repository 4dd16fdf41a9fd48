"""Find recordings by what a user names: a manifest, a BIDS tree, or a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from os import PathLike, fspath
from pathlib import Path

from idfsmec.errors import ArgumentError, InputError
from idfsmec.recordings.bids import read_bids
from idfsmec.recordings.datasets.modma import read_modma3, read_modma128
from idfsmec.recordings.datasets.pred import read_pred_d003
from idfsmec.recordings.manifest import read_manifest
from idfsmec.recordings.recording import Recording
from idfsmec.table.columns import same_name

DATA_SETS: dict[str, Callable[..., list[Recording]]] = {
    "modma3": read_modma3,
    "modma128": read_modma128,
    "pred-d003": read_pred_d003,
}
"""Data sets known by name, and what reads a user's copy of them.

A reader takes the folder, and by keyword those options of :func:`find_recordings` that it
understands; one that is added here can be named like the others.
"""


def find_recordings(
    source: str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
    labels: str | None = None,
    task: str | None = None,
    condition: str | Sequence[str] | None = None,
    unit: str | None = None,
    absent_ok: bool = False,
) -> list[Recording]:
    """Name the recordings of a study, without loading them.

    Parameters
    ----------
    source : path-like or str
        A manifest (a CSV file), the root folder of a BIDS tree, or the name of a data set:
        ``modma3``, ``modma128``, ``pred-d003``.
    data : path-like, optional
        The folder with your copy of a data set that is given by name.
    labels : str, optional
        For ``pred-d003`` the rule that makes labels, such as ``bdi13``; for a BIDS tree the
        column of ``participants.tsv``.
    task : str, optional
        Keep one task of a BIDS tree.
    condition : str or sequence of str, optional
        Keep the recordings of some conditions: names of the manifest's column; of a BIDS tree
        such as ``acq-EC``, ``run-1`` or all together, ``task-rest_acq-EC_run-1``; of
        ``pred-d003`` ``eyes-open`` and ``eyes-closed``, of which each becomes a recording.
    unit : str, optional
        Of ``modma3`` and ``modma128``: ``uV``, ``nV``, ``V``, or how many volts one step is.
    absent_ok : bool
        Whether a manifest may name files that are not there; they fail when they are loaded.

    Returns
    -------
    list of Recording

    Raises
    ------
    InputError
        Where the source is not usable, or an option does not go with it.
    """
    name = fspath(source)
    path = Path(name)
    wanted = [condition] if isinstance(condition, str) else list(condition or ())
    given = {"labels": labels, "task": task, "unit": unit}
    given["condition"] = ", ".join(wanted) or None
    if name in DATA_SETS:
        if data is None:
            raise ArgumentError(
                f"{name}: say where your copy of this data set is, with data=FOLDER.",
                argument="data",
            )
        reader = DATA_SETS[name]
        _refuse_others(given, set(signature(reader).parameters), name)
        options = {k: v for k, v in given.items() if v is not None and k != "condition"}
        if not wanted:
            return reader(data, **options)
        return [rec for name in wanted for rec in reader(data, condition=name, **options)]
    if data is not None:
        raise ArgumentError(
            f"data={fspath(data)!r}: goes with {', '.join(DATA_SETS)}, not with {name!r}.",
            argument="data",
        )
    if path.is_dir():
        _refuse_others(given, {"labels", "task", "condition"}, "a BIDS tree")
        return _of_conditions(read_bids(path, label=labels, task=task), wanted, name)
    if path.is_file():
        _refuse_others(given, {"condition"}, "a manifest")
        return _of_conditions(read_manifest(path, absent_ok=absent_ok), wanted, name)
    raise InputError(
        f"{name}: there is no such manifest or BIDS folder, and no data set of that name "
        f"({', '.join(DATA_SETS)})."
    )


def _of_conditions(
    recordings: list[Recording], wanted: Sequence[str], name: str
) -> list[Recording]:
    """Keep the recordings of some conditions, and refuse one that nobody was recorded in."""
    if not wanted:
        return recordings
    # A condition is found as a whole, and by the parts that BIDS has.
    spellings = [
        {same_name(part) for part in condition.split("_") if "-" in part} | {same_name(condition)}
        if condition
        else set()
        for condition in (recording.condition for recording in recordings)
    ]
    for condition in wanted:
        if not any(same_name(condition) in names for names in spellings):
            there = dict.fromkeys(rec.condition for rec in recordings if rec.condition)
            raise ArgumentError(
                f"condition={condition!r}: {name} has {', '.join(there) or 'no conditions'}.",
                argument="condition",
            )
    asked = {same_name(condition) for condition in wanted}
    return [rec for rec, names in zip(recordings, spellings, strict=True) if asked & names]


def _refuse_others(given: dict[str, str | None], allowed: set[str], what: str) -> None:
    """Refuse options that would be ignored: a mistake that nobody would notice."""
    for option, value in given.items():
        if value is not None and option not in allowed:
            raise ArgumentError(
                f"{option}={value!r}: has no meaning for {what}; leave it out.", argument=option
            )
