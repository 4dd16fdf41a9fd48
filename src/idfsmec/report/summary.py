"""Results become plain data: everything the page says, before it is said in HTML."""

from __future__ import annotations

import re
from typing import Any

from idfsmec.evaluation.results import Results
from idfsmec.report._ablation import ablation_table
from idfsmec.report._answer import _plain, own_ranking, table_answer
from idfsmec.report._caution import cautions
from idfsmec.report._comparison import compare_methods, rank_methods
from idfsmec.report._cost import cost_table
from idfsmec.report._words import (
    decide_metric,
    describe_protocol,
    listing,
    metric_name,
    percent,
    protocol_of,
)

_PROTOCOL_WORDS = {
    "folds": ("Folds", {"subject": "subject-wise: a person is in training or in test, never both",
                        "sample": "sample-wise: a person is in training and in test"}),
    "tuning": ("Settings", {"nested": "nested: chosen by inner folds of the training data",
                            "oracle": "optimistic: best on the test folds"}),
    "gaps": ("Gaps", {"everywhere": "in training and test samples alike",
                      "selection": "only in what the selector sees"}),
}  # fmt: skip


def summarise(results: Results) -> dict[str, Any]:
    """Everything the page says, as lists, dicts, text and numbers.

    Parameters
    ----------
    results : Results
        From :meth:`idfsmec.evaluation.Results.read`.

    Returns
    -------
    dict
        ``tables`` (one dict per table: ``facts``, ``answer``, ``comparison``, ``ablation``,
        ``cost``, ``ranking``), ``ranks``, ``cautions``, ``protocol``, ``versions``, ``command``
        and the like. What is not there is None.
    """
    names = main_tables(results)
    answers = {name: table_answer(results, name) for name in names}
    ranked = rank_methods(results)
    return {
        "title": f"EEG features and channels: {listing(names, most=3)}",
        "note": describe_protocol(protocol_of(results.protocol, "accuracy")),
        "metric": metric_name(decide_metric(results.protocol)),
        "tables": [
            {
                "name": name,
                "facts": _facts(results.tables[name]),
                "answer": answers[name],
                "comparison": compare_methods(results, name),
                "ablation": _ablation(results, name),
                "cost": _cost(results, name),
                "ranking": [_plain(row) for row in own_ranking(results, name).to_dict("records")],
            }
            for name in names
        ],
        "ranks": None if isinstance(ranked, str) else _ranks(*ranked),
        "cautions": cautions(results, answers),
        "protocol": _protocol(results),
        "versions": _pairs(results.environment.get("versions")),
        "machine": _pairs(results.environment.get("machine")),
        "started": results.environment.get("start"),
        "ended": results.environment.get("end"),
        "command": results.environment.get("command") or None,
    }


def main_tables(results: Results) -> list[str]:
    """Tables the page is about; those cut to fewer channels to measure cost are not."""
    names = [str(name) for name in results.tables]
    return [name for name in names if base_table(name, names) == name]


def base_table(name: str, names: list[str]) -> str:
    """The table that ``<table>, 19 channels`` was cut from.

    Examples
    --------
    >>> base_table("mine, 3 channels", ["mine", "mine, 3 channels"])
    'mine'
    """
    cut = re.sub(r", \d+ channels$", "", name)
    return cut if cut in names else name


def cost_rows(results: Results, name: str) -> Any:
    """Scores of the cost experiment on the table and on its cuts."""
    scores, names = results.scores, [str(one) for one in results.tables]
    of_cost = scores[scores["experiment"] == "cost"]
    return of_cost[of_cost["table"].map(lambda one: base_table(str(one), names)) == name]


def experiment_rows(results: Results, experiment: str, name: str) -> Any:
    """Scores of one experiment on one table."""
    scores = results.scores
    return scores[(scores["experiment"] == experiment) & (scores["table"] == name)]


def _facts(about: dict[str, Any]) -> list[tuple[str, str]]:
    labels = ", ".join(f"{label}: {count}" for label, count in about.get("labels", {}).items())
    facts = [
        ("subjects", f"{about['n_subjects']}" if "n_subjects" in about else ""),
        ("samples", f"{about['n_samples']} ({labels})" if "n_samples" in about else ""),
        ("channels", f"{len(about['channels'])}"),
        ("features per channel", f"{len(about['features'])}"),
        ("missing as recorded", percent(about["share_missing"], 1)
         if "share_missing" in about else ""),
    ]  # fmt: skip
    return [(name, value) for name, value in facts if value]


def _ablation(results: Results, name: str) -> list[dict[str, Any]] | None:
    rows = experiment_rows(results, "ablation", name)
    metric = decide_metric(results.protocol)
    if rows.empty or rows[metric].isna().all():
        return None
    table = ablation_table(rows, metric, len(results.tables[name]["channels"]))
    return [_plain(row) for row in table.to_dict("records")]


def _cost(results: Results, name: str) -> list[dict[str, Any]] | None:
    rows = cost_rows(results, name)
    if rows.empty or rows["seconds"].isna().all():
        return None
    return [_plain(row) for row in cost_table(rows).to_dict("records")]


def _ranks(comparison: Any, tests: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "methods": list(comparison.methods),
        "mean_ranks": [float(rank) for rank in comparison.mean_ranks],
        "critical_difference": comparison.critical_difference,
        "p_value": comparison.p_value,
        "n_blocks": comparison.n_blocks,
        "tests": tests,
    }


def _protocol(results: Results) -> list[tuple[str, str]]:
    protocol = protocol_of(results.protocol, "accuracy")
    lines = []
    for key, (title, words) in _PROTOCOL_WORDS.items():
        if protocol.get(key):
            lines.append((title, words.get(protocol[key], str(protocol[key]))))
    if protocol.get("n_splits"):
        repeats = protocol.get("n_repeats") or 1
        lines.append(("Outer folds", f"{protocol['n_splits']}, repeated {repeats} x"))
    for key, title in (("patterns", "Patterns of gaps"), ("ks", "Features kept")):
        if protocol.get(key):
            lines.append((title, ", ".join(str(value) for value in protocol[key])))
    if protocol.get("rates") is not None:
        lines.append(("Missing rates", ", ".join(percent(rate) for rate in protocol["rates"])))
    lines.append(("Score shown", metric_name(decide_metric(results.protocol))))
    lines.append(
        ("Intervals", "95 %, over folds and repetitions, corrected for overlapping training sets")
    )
    return lines


def _pairs(content: Any) -> list[tuple[str, str]]:
    if not content:
        return []
    if not isinstance(content, dict):
        return [("machine", str(content))]
    return [
        (str(key), str(value)) for key, value in content.items() if not isinstance(value, list)
    ]
