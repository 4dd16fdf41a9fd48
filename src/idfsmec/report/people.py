"""A page about every person that a model was asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from idfsmec._files import replacing
from idfsmec.errors import ExistingFileError
from idfsmec.prediction import Model, Predictions, SubjectPrediction
from idfsmec.report.figures import slugify
from idfsmec.report.formatting import metric_name, percent
from idfsmec.report.models import USE, make_bars, model_facts
from idfsmec.report.page import make_environment

#: How close probabilities count as similar.
_SIMILAR = 0.1
_MOST_VOTES = 8


def write_person_pages(
    model: Model,
    predictions: Predictions,
    folder: str | PathLike[str],
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Write a page about every person.

    Parameters
    ----------
    model : Model
    predictions : Predictions
        What it said.
    folder : path-like
        Where the pages go, made if need be; each is called like the person.
    overwrite : bool
        Whether to replace pages that are there.

    Returns
    -------
    list of Path
        In the order of the people.
    """
    folder = Path(folder)
    pages = _page_names(folder, [one.subject for one in predictions.subjects])
    for page in pages:
        if page.exists() and not overwrite:
            raise ExistingFileError(page)
    template = make_environment().get_template("person.html")
    notes = [_sentence(one) for one in predictions.notes]
    for page, person in zip(pages, predictions.subjects, strict=True):
        text = template.render(**_about_person(model, person), notes=notes)
        with replacing(page) as (beside,):
            beside.write_text(text, encoding="utf-8")
    return pages


def _page_names(folder: Path, people: Iterable[str]) -> list[Path]:
    names: dict[str, None] = {}
    for person in people:
        name, number = slugify(person), 2
        while name in names:
            name, number = f"{slugify(person)}-{number}", number + 1
        names[name] = None
    return [folder / f"{name}.html" for name in names]


def _about_person(model: Model, person: SubjectPrediction) -> dict[str, Any]:
    said = person.predicted is not None
    headline = "Nothing could be said."
    if said:
        headline = f"{percent(person.probability)} {person.predicted}."
        if person.low < 1 / len(model.classes) < person.high:
            headline = f"Undecided: {headline}"
    votes = dict(list(person.votes.items())[:_MOST_VOTES])
    return {
        "brand": "idfsmec prediction",
        "title": person.subject,
        "chips": [f"{len(person.epochs)} epochs", f"{percent(person.share_present)} of channels"],
        "headline": headline,
        "use": USE,
        "warnings": [_sentence(one) for one in person.warnings],
        "predicted": person.predicted,
        "probability": person.probability if said else None,
        "measured": bool(_metrics(model)),
        "low": person.low if np.isfinite(person.low) else None,
        "high": person.high,
        "votes": make_bars(votes, signed=True),
        "share": person.share_present,
        "n_channels": len(model.channels),
        "n_epochs": len(person.epochs),
        "nearer": person.nearer,
        "distance": person.distance,
        "similar": _similar(model, person) if said else "",
        "facts": [
            *((metric_name(n), _measured(one)) for n, one in _metrics(model).items()),
            *model_facts(model),
        ],
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _metrics(model: Model) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], model.performance.get("metrics", {}))


def _measured(one: Mapping[str, float]) -> str:
    return (
        f"{percent(one['mean'])} by person ({percent(one['low'])} to {percent(one['high'])}; "
        f"guessing up to {percent(one['chance_high'])})"
    )


def _similar(model: Model, person: SubjectPrediction) -> str:
    """How it went with training people of similar probability when they were held out."""
    held_out = model.performance.get("held_out")
    if not held_out:
        return ""
    code = model.classes.index(person.predicted)
    given = np.array(held_out["left"])[0][:, code]
    close = np.abs(given - person.probability) <= _SIMILAR
    right = int((np.array(held_out["true"])[close] == code).sum())
    if not close.any():
        return "Held out, none of the training people had a probability close to this one."
    return (
        f"When they were held out, {int(close.sum())} of the {close.size} training people had a "
        f"probability of {person.predicted} within {round(100 * _SIMILAR)} points of this one; "
        f"{right} of them were {person.predicted}."
    )
