"""What folds by hospital gave at each of them, as plain data and sentences."""

from __future__ import annotations

from typing import Any

import pandas as pd

from idfsmec._entanglement import ENTANGLED, entanglement_of_counts
from idfsmec.evaluation import Results, site_scores
from idfsmec.report.formatting import experiment_protocol, listing, percent, plain_row
from idfsmec.report.scores import lowest_rate, proposed_method
from idfsmec.report.style import label_of

HARMONIZED = (
    "brought to one location and scale (ComBat), learned from the training samples of each fold; "
    "a hospital that is left out goes by its own samples, without their labels"
)


def summarise_sites(results: Results, table: str) -> dict[str, Any] | None:
    """One row for each hospital that was left out, at the lowest missing rate.

    Returns
    -------
    dict or None
        ``method``, ``rate``, ``rows`` (``site``, ``n_subjects``, ``subject_accuracy``, ``low``,
        ``high``, ``chance_low``, ``chance_high``) and ``sentences``; None where folds were not
        by site.
    """
    found = site_scores(results)
    found = found[(found["table"] == table) & found["subject_accuracy"].notna()]
    if found.empty:
        return None
    main, there = proposed_method(results), found["method"].unique()
    method = str(main if main in there else there[0])
    own = lowest_rate(found[found["method"] == method])
    own = own[own["filler"] == own["filler"].iloc[0]]
    return {
        "method": label_of(method, results.methods),
        "rate": float(own["rate"].iloc[0]),
        "rows": [plain_row(row) for row in own.to_dict("records")],
        "sentences": [_say(own, label_of(method, results.methods)), *_say_inner(results, own)],
    }


def warn_of_sites(results: Results) -> list[tuple[str, str]]:
    """Tables that were harmonized though site and label go together: title and text."""
    if not experiment_protocol(results, "accuracy").get("harmonize"):
        return []
    found = []
    for name, about in results.tables.items():
        sites = about.get("sites", [])
        labels = sorted({label for site in sites for label in site["labels"]})
        counts = [[site["labels"].get(label, 0) for label in labels] for site in sites]
        if sites and (share := entanglement_of_counts(counts)) >= ENTANGLED:
            text = (
                f"Of the difference between the groups {percent(share)} lies between hospitals, "
                "and harmonizing takes it out with what hospitals do. Compare with a run without "
                "it, and see the audit."
            )
            found.append((f"Hospital and label are entangled: {name}", text))
    return found


def _say(own: pd.DataFrame, method: str) -> str:
    values = own["subject_accuracy"]
    above = own.loc[own["low"] > own["chance_high"], "site"].tolist()
    said = (
        f"One hospital was left out at a time, so that nobody of it was known in training: "
        f"{method} is right about {percent(values.min())} to {percent(values.max())} of a "
        f"hospital's people"
    )
    if len(above) == len(own):
        return f"{said}, above guessing at each of the {len(own)}."
    surely = f"only at {listing(above)}" if above else f"at none of the {len(own)}"
    return f"{said}; {surely} is the interval above guessing."


def _say_inner(results: Results, own: pd.DataFrame) -> list[str]:
    """How settings were chosen: by hospitals too, where enough are left."""
    if experiment_protocol(results, "accuracy").get("tuning") != "nested":
        return []
    if len(own) > 2:
        return ["Settings were chosen by leaving out each of the other hospitals in turn."]
    return [
        "Settings were chosen by folds of people: of two hospitals one is left for training, and "
        "none can be left out of it."
    ]
