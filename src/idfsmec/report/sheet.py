"""A reporting sheet in Markdown: what is known is filled in, the rest is asked.

The items follow three guidelines, in words of our own: TRIPOD+AI (prediction models; BMJ 2024,
385:e078378), REFORMS (science that uses machine learning; Science Advances 2024, 10:eadk3452) and
COBIDAS-MEEG (EEG and MEG; Nature Neuroscience 2020, 23:1473-1483). Their own texts are what a
journal asks for; this sheet saves looking up what a folder of results already holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from idfsmec._files import replacing
from idfsmec.errors import ExistingFileError
from idfsmec.evaluation import Results
from idfsmec.evaluation.auditing.words import TITLES, say_audit
from idfsmec.report.formatting import describe_protocol, experiment_protocol, listing, percent
from idfsmec.table import FeatureTable

T, R, C = "TRIPOD+AI", "REFORMS", "COBIDAS-MEEG"

#: What only the authors know, by section: which guideline asks, and what.
_QUESTIONS: dict[str, list[tuple[str, str]]] = {
    "Aim": [
        (f"{T}, {R}", "What is predicted, for whom, at which moment, and to what use? Is it a new "
         "model, or a test of an old one?"),
        (R, "About which population is the claim, and why do these people stand for it?"),
    ],
    "People": [
        (f"{T}, {C}", "Where, when and how were people recruited? Who was asked and did not take "
         "part, and who was left out, why?"),
        (f"{T}, {R}", "How was the diagnosis made, by whom, and did they know the EEG?"),
        (T, "Were patients treated, and were controls matched? On what?"),
        (T, "Was the number of people planned? How?"),
        (C, "Which ethics committee approved it, and what did people consent to?"),
    ],
    "Recording": [
        (C, "Which amplifier, cap and electrodes? Was it the same device, room and person at work "
         "for all groups?"),
        (C, "Which reference and ground, which filters in the hardware, which impedances?"),
        (C, "What did people do: eyes open or closed, how long, at what time of the day?"),
    ],
    "Analysis": [
        (f"{T}, {R}", "What was decided before the data were seen, and what after? Is there a "
         "registered protocol?"),
        (R, "Was anything (bad channels, epochs, features) chosen by looking at labels or at "
         "people who were later held out?"),
        (T, "Does the model do equally well for women and men, for young and old?"),
    ],
    "Sharing": [
        (f"{T}, {R}, {C}", "Where are the data, the code and the model, and who may use them?"),
        (T, "Who paid, and who has an interest in the outcome?"),
        (T, "Were patients or the public involved?"),
    ],
    "Reading": [
        (f"{T}, {R}", "To whom does the result not apply? What would have to be true for it to "
         "hold in another clinic?"),
    ],
}  # fmt: skip


def write_reporting_sheet(
    path: str | PathLike[str],
    results: Results,
    tables: Mapping[str, FeatureTable] | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Write what a paper has to report, filled in as far as results and tables say.

    Parameters
    ----------
    path : path-like
        A Markdown file.
    results : Results
    tables : mapping of name to FeatureTable, optional
        Say more: how features were made and how people were recorded.
    overwrite : bool
        Whether to replace a sheet that is there.
    """
    sheet = Path(path)
    if sheet.exists() and not overwrite:
        raise ExistingFileError(sheet)
    with replacing(sheet) as (beside,):
        beside.write_text(reporting_sheet(results, tables or {}), encoding="utf-8")
    return sheet


def reporting_sheet(results: Results, tables: Mapping[str, FeatureTable]) -> str:
    """The sheet as text."""
    known = {
        "People": _people(results),
        "Recording": _recordings(results, tables),
        "Analysis": _analysis(results, tables),
        "Reading": _reading(results),
        "Sharing": _sharing(results),
    }
    lines = [
        "# Reporting sheet",
        "",
        f"Items of {T}, {R} and {C}, in words of our own. Filled in is what the results hold; "
        "boxes are questions that only you can answer.",
    ]
    for section, questions in _QUESTIONS.items():
        lines += ["", f"## {section}", ""]
        lines += [f"- {line}" for line in known.get(section, [])]
        lines += [f"- [ ] {question} *({who})*" for who, question in questions]
    return "\n".join(lines) + "\n"


def _people(results: Results) -> list[str]:
    found = []
    for name, about in results.tables.items():
        labels = ", ".join(f"{label} {n}" for label, n in about.get("labels", {}).items())
        audit = results.audits.get(name)
        by_class = ""
        if audit is not None and audit.n_people:
            each = zip(audit.n_people, audit.classes, strict=True)
            by_class = f" ({listing([f'{n} {label}' for n, label in each])})"
        found.append(
            f"**{name}**: {about['n_subjects']} people{by_class}, {about['n_samples']} samples "
            f"({labels}). *({T}, {R}, {C})*"
        )
    return found


def _recordings(results: Results, tables: Mapping[str, FeatureTable]) -> list[str]:
    found = []
    for name, about in results.tables.items():
        montage = about.get("montage") or "not recorded"
        found.append(
            f"**{name}**: {len(about['channels'])} channels ({listing(about['channels'], 6)}), "
            f"montage {montage}; {percent(about['share_missing'], 1)} of channel samples missing. "
            f"*({C}, {T}: missing data)*"
        )
        table = tables.get(name)
        facts = [] if table is None else _facts(table)
        if facts:
            found.append(f"**{name}**, as recorded: {'; '.join(facts)}. *({C})*")
    return found


def _facts(table: FeatureTable) -> list[str]:
    """Ranges of what recordings say about themselves."""
    kept = [one.get("facts") or {} for one in table.info.get("recordings") or []]
    said = [f"{len(kept)} recordings"] if kept else []
    for key, words, unit in (
        ("sfreq", "sampling rate", " Hz"),
        ("duration", "length", " s"),
        ("n_recorded", "channels in the file", ""),
        ("line_amplitude", "mains", " µV"),
        ("upper_edge", "upper edge", " Hz"),
        ("quantisation", "step of the converter", " µV"),
    ):
        values = [one[key] for one in kept if one.get(key) is not None]
        if values:
            low, high = float(np.min(values)), float(np.max(values))
            span = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
            said.append(f"{words} {span}{unit}")
    formats = sorted({str(one["format"]) for one in kept if one.get("format")})
    return [*said, f"files: {', '.join(formats)}"] if formats else said


def _analysis(results: Results, tables: Mapping[str, FeatureTable]) -> list[str]:
    found = []
    for name, table in tables.items():
        steps = [
            f"{key} {table.info[key]}"
            for key in ("sfreq", "band_pass", "epoch", "overlap", "reference", "line_freq")
            if table.info.get(key) is not None
        ]
        features = f"{len(table.features)} features per channel ({listing(table.features, 4)})"
        found.append(f"**{name}**: {'; '.join([features, *steps])}. *({C}, {R}: preprocessing)*")
    protocol = experiment_protocol(results, "accuracy")
    if protocol.get("folds"):
        found.append(
            f"Evaluation: {describe_protocol(protocol)}; standardising, filling and selection are "
            f"learned inside training folds. *({T}, {R}: leakage)*"
        )
        found.append(
            f"Scores: {protocol.get('metric', 'balanced_accuracy')} and others, by sample and by "
            f"person, with intervals over folds and the band that guessing gives. *({T}, {R})*"
        )
    return found


def _reading(results: Results) -> list[str]:
    found = []
    for name, audit in results.audits.items():
        found.append(f"**{name}**, audit: {TITLES[audit.level]}. *({R}: leakage, {C})*")
        found += [f"**{name}**: {line}" for line in say_audit(audit)[1:]]
    return found


def _sharing(results: Results) -> list[str]:
    versions: Mapping[str, Any] = results.environment.get("versions") or {}
    shown = ", ".join(f"{package} {version}" for package, version in versions.items())
    command = results.environment.get("command")
    found = [f"Software: {shown or 'not recorded'}. *({R}: reproducibility, {T})*"]
    if command:
        found.append(f"Command: `{command}`; seeds {results.environment.get('seeds')}. *({R})*")
    return found
