"""The target of a table: classes, a score, or grades in an order; it is chosen, not guessed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.table.columns import LABEL

Kind = Literal["classes", "score", "grades"]
#: More different numbers than this are no classes.
MOST_CLASSES = 10
#: Where the labels of a table stay when another column is its target.
DIAGNOSIS = "diagnosis"
_KEY = "target"  # in ``info``


@dataclass(frozen=True)
class Target:
    """What is predicted.

    Parameters
    ----------
    kind : {"classes", "score", "grades"}
        Classes without an order, numbers, or labels in an order.
    name : str
        The column that it was; of grades "grade".
    order : tuple of str
        Grades from the lowest to the highest; empty for the other kinds.
    n_without : int
        Participants that were left out because they have no score.
    """

    kind: Kind = "classes"
    name: str = LABEL
    order: tuple[str, ...] = ()
    n_without: int = 0

    @property
    def is_numeric(self) -> bool:
        """Whether it is fitted as numbers: a score, or grades by their places in the order."""
        return self.kind != "classes"

    def numbers(self, y: pd.Series) -> NDArray[np.float64]:
        """Return a score, or the place of each grade in the order, from 0."""
        if self.kind == "grades":
            y = y.astype(str).map({grade: place for place, grade in enumerate(self.order)})
        return y.to_numpy(dtype=np.float64)

    def info(self) -> dict[str, Any]:
        """Return what ``FeatureTable.info`` keeps of it."""
        return {_KEY: {**asdict(self), "order": list(self.order)}}


def target_of(info: Mapping[str, Any], y: pd.Series) -> Target:
    """Return the target of a table from its ``info``; refuse numbers that nobody chose as one."""
    known = info.get(_KEY)
    if isinstance(known, Mapping) and known.get("kind") in get_args(Kind):
        return Target(**{**known, "order": tuple(known.get("order", ()))})
    n_values = y.nunique()
    if pd.api.types.is_numeric_dtype(y) and n_values > MOST_CLASSES:
        raise InputError(
            f"the column 'label' holds {n_values} different numbers: give --target label to take "
            "it as a score, or --order with its values from low to high to take it as grades "
            "(from Python: table.with_target('label') or table.with_order([...]))",
            argument=_KEY,
        )
    return Target()


def score_column(
    y: pd.Series, subjects: pd.Series, rows: pd.DataFrame | None, name: str
) -> tuple[pd.Series, pd.DataFrame | None, NDArray[np.bool_], Target]:
    """Return a score, other facts of the rows, which rows have the score, and the target."""
    columns = {LABEL: y} | ({} if rows is None else {str(key): rows[key] for key in rows})
    alike = {column.casefold(): column for column in columns}
    if name not in columns and name.casefold() not in alike:
        raise InputError(
            f"the table has no column {name!r} to predict; it has {', '.join(columns)}",
            argument=_KEY,
        )
    name = name if name in columns else alike[name.casefold()]
    column, others = columns[name], [key for key in columns if key not in (name, LABEL)]
    score = _as_score(column)
    if score is None:
        raise InputError(
            f"the column {name!r} does not hold numbers, and a score is a number: name another "
            "column, or leave --target out to take the labels as classes",
            argument=_KEY,
        )
    known = np.isfinite(score.to_numpy())
    if score[known].nunique() < 2:
        raise InputError(f"the column {name!r} holds fewer than 2 different numbers")
    left_out = np.setdiff1d(subjects, subjects[known])
    if not known.all():
        n_rows = int((~known).sum())
        warnings.warn(
            f"{len(left_out)} of {subjects.nunique()} participants have no {name} and are left out"
            f" ({n_rows} of {len(known)} samples)",
            UserWarning,
            stacklevel=3,
        )
    kept = None if rows is None else rows[others]
    if name != LABEL and DIAGNOSIS not in others:
        labels = pd.DataFrame({DIAGNOSIS: y})
        kept = labels if kept is None else kept.assign(**{DIAGNOSIS: y})
    return score, kept, known, Target("score", name, n_without=len(left_out))


def _as_score(column: pd.Series) -> pd.Series | None:
    """Return numbers, NaN where a cell is blank or says n/a; None where others are no numbers."""
    if pd.api.types.is_bool_dtype(column):
        return None
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(np.float64)
    text = column.astype(object).where(column.notna(), "").astype(str).str.strip()
    blank = text.str.casefold().isin(["", "n/a", "na", "nan"])
    numbers = pd.to_numeric(text.mask(blank), errors="coerce").astype(np.float64)
    return None if blank.all() or (numbers.isna() & ~blank).any() else numbers


def ordered_labels(y: pd.Series, order: Sequence[str]) -> tuple[pd.Series, Target]:
    """Return labels as text, and the target with the order of the grades."""
    grades = tuple(dict.fromkeys(str(grade).strip() for grade in order))
    labels = y.astype(str)
    absent = sorted(set(labels) - set(grades))
    if absent:
        raise InputError(
            f"the order {', '.join(grades)} lacks the label {absent[0]}: name all labels, from "
            "low to high",
            argument="order",
        )
    if len(unused := [grade for grade in grades if grade not in set(labels)]) > len(grades) - 2:
        raise InputError(
            f"grades need at least 2 labels, and no sample has {unused[0]}", argument="order"
        )
    return labels, Target("grades", "grade", grades)
