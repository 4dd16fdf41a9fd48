"""An audit in words: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from idfsmec.evaluation.auditing.variables import kind_of, say_variable

if TYPE_CHECKING:
    from idfsmec.evaluation.auditing.summary import Audit

#: What an audit's levels are called.
TITLES = {
    "red": "The recording does as well as the EEG",
    "amber": "The recording goes with the label",
    "green": "Nothing known of the recordings goes with the label",
    "grey": "It cannot be told whether it is the recording",
}
_MODELS = {
    "logistic": "all of it together",
    "boosting": "all of it together, by boosting",
    "leader": "its leading variable alone",
}
#: By how much folds by sample or early selection must differ to be worth a sentence.
_WORTH = 0.02


def say_verdict(audit: Audit) -> str:
    """The verdict in one sentence or two."""
    if audit.level == "grey":
        return _say_grey(audit)
    if audit.level == "green":
        return (
            f"None of {len(audit.variables)} variables of the recordings tells "
            f"{_groups(audit)} apart beyond luck, alone or together. What nobody wrote down was "
            "not looked at."
        )
    eeg, recording = audit.figures.get("eeg"), audit.figures.get(audit.recording)
    if recording is None:
        verb = "differs" if len(_names(audit)) == 1 else "differ"
        known = f"{_listing(_names(audit))} {verb} between {_groups(audit)}"
        return f"{known[0].upper()}{known[1:]}; there were too few people to hold any out."
    reached = f"{_area(recording)} from {_MODELS[audit.recording]}"
    if eeg is None:
        return f"How people were recorded tells {_groups(audit)} apart: {reached}."
    beside = f"{reached}, {_area(eeg)} from the EEG"
    if audit.level == "amber":
        return (
            f"How people were recorded tells {_groups(audit)} apart, though not as well as the "
            f"EEG: {beside}. Suspects: {_listing(_names(audit))}."
        )
    return (
        f"How people were recorded tells {_groups(audit)} apart as well as the EEG does, as far "
        f"as {sum(audit.n_people)} people can tell: {beside}. {_blame(audit)}"
    )


def say_audit(audit: Audit) -> list[str]:
    """The verdict, what it rests on, what is left, and leaks: a line each."""
    return [
        f"{TITLES[audit.level]}. {say_verdict(audit)}",
        *say_variables(audit),
        *say_left(audit),
        *say_leaks(audit),
    ]


def say_folds(audit: Audit) -> str:
    """Who was held out; empty where nobody could be.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> say_folds(SimpleNamespace(folds="site", n_splits=3))
    'one of 3 hospitals left out at a time'
    """
    if not audit.n_splits:
        return ""
    if audit.folds == "site":
        return f"one of {audit.n_splits} hospitals left out at a time"
    return f"{audit.n_splits} folds by person"


def say_variables(audit: Audit, most: int = 3) -> list[str]:
    """The variables that go with the label, what was not looked at, and unusual folds."""
    said = []
    if audit.folds == "site":
        said.append(
            f"Recording and EEG were judged with {say_folds(audit)}: the figures are those at "
            "hospitals that were not known."
        )
    rows = audit.variables[audit.variables["variable"].isin(audit.suspects)]
    each = [say_row(dict(row), audit.classes) for _, row in rows.head(most).iterrows()]
    if each:
        rest = f", and {len(rows) - most} more" if len(rows) > most else ""
        said.append(f"Goes with the label: {'; '.join(each)}{rest}.")
    if audit.unused:
        said.append(
            f"Not looked at, because it may be the illness itself: {_listing(audit.unused)}."
        )
    return said


def say_row(row: dict[str, Any], classes: Sequence[str]) -> str:
    """One variable with its AUC and p-value."""
    level = f" ({row['level']})" if row["level"] else ""
    where = f"{'higher' if row['higher'] else 'lower'} in {classes[row['class']]}"
    if row["level"]:
        where = f"{'more' if row['higher'] else 'less'} often in {classes[row['class']]}"
    return (
        f"{say_variable(row['variable'])}{level}, {where}: {_area(row)}, corrected p "
        f"{row['p_holm']:.2g}"
    )


def say_left(audit: Audit) -> list[str]:
    """What is left of the EEG's figure; nothing where there is no suspect."""
    said, alike, regressed = [], audit.alike, audit.regressed
    if alike and not alike["told"]:
        counts = _listing(
            [f"{n} {name}" for n, name in zip(alike["n_people"], audit.classes, strict=True)]
        )
        who = f"only {counts} have" if alike["n_pairs"] else "nobody has"
        said.append(
            f"What the EEG tells among people recorded alike cannot be told: {who} somebody like "
            "them in another group."
        )
    elif alike:
        counts = _listing(
            [f"{n} {name}" for n, name in zip(alike["n_people"], audit.classes, strict=True)]
        )
        left = "which chance would give too" if alike["low"] <= 0.5 else "above chance"
        said.append(
            f"Among people recorded alike ({counts}, {alike['n_pairs']} pairs) the EEG has "
            f"{_area(alike)}, {left}; the recording itself has AUC "
            f"{alike['recording_auc']:.2f} there."
        )
    if regressed:
        left = "which chance would give too" if regressed["low"] <= 0.5 else "above chance"
        said.append(
            f"With {_listing([say_variable(name) for name in regressed['variables']])} regressed "
            f"out inside the folds the EEG has {_area(regressed)}, {left}."
        )
    return said


def say_leaks(audit: Audit) -> list[str]:
    """Leaks that were looked for."""
    return [
        *_say_claims(audit.leaks),
        *_say_shuffled(audit.leaks.get("shuffled")),
        *_say_names(audit.leaks),
    ]


def _say_claims(leaks: dict[str, Any]) -> list[str]:
    honest = leaks.get("subject")
    if not honest:
        return []
    said, own = [], honest["roc_auc"]
    for name, what in (
        ("by_sample", "folds by sample, with people on both sides,"),
        ("before", "choosing features before splitting"),
    ):
        other = leaks.get(name)
        if other is None:
            continue
        gain = other["roc_auc"] - own
        worth = f"{gain:+.2f}" if abs(gain) >= _WORTH else "as good as nothing"
        said.append(
            f"AUC over samples: {own:.2f} as it should be, {other['roc_auc']:.2f} with {what} "
            f"which would add {worth}."
            if name == "by_sample"
            else f"AUC over samples: {own:.2f} as it should be, {other['roc_auc']:.2f} by {what}, "
            f"which would add {worth}."
        )
    return said


def _say_shuffled(shuffled: dict[str, Any] | None) -> list[str]:
    if not shuffled:
        return []
    mean = sum(shuffled["auc"]) / len(shuffled["auc"])
    band = f"{shuffled['low']:.2f} to {shuffled['high']:.2f}"
    if mean > shuffled["high"]:
        return [f"Shuffled labels are told apart (AUC {mean:.2f}, luck gives {band}): a leak."]
    return [f"Shuffled labels give AUC {mean:.2f}, within what luck gives ({band})."]


def _say_names(leaks: dict[str, Any]) -> list[str]:
    said, twice, repeated = [], leaks.get("two_names"), leaks.get("repeated")
    if twice is not None and not twice["told"]:
        said.append("Whether one person has two names cannot be told: too few samples each.")
    elif twice is not None and twice["pairs"]:
        pairs = _listing([f"{a} and {b}" for a, b, *_ in twice["pairs"]])
        said.append(
            f"One person under two names? Samples of {pairs} are as near to each other's as to "
            "their own. If they are one person, give them one name."
        )
    elif twice is not None:
        said.append("Nobody looks like one person under two names.")
    if repeated and repeated["n_across"]:
        pairs = _listing([f"{a} and {b}" for a, b in repeated["pairs"]])
        said.append(f"{repeated['n_across']} rows come again under another name ({pairs}).")
    elif repeated and repeated["n_repeated"]:
        said.append(f"{repeated['n_repeated']} rows come twice, of the same person.")
    elif repeated:
        said.append("No row comes twice.")
    return said


def _say_grey(audit: Audit) -> str:
    n = sum(audit.n_people)
    if audit.why == "few":
        return (
            f"With {n} people ({_groups(audit, counts=True)}) no difference could be told from "
            f"luck after asking {len(audit.variables)} questions. The numbers below are a "
            "description."
        )
    return (
        "The table does not say how recordings were made, so only what it shows itself could be "
        "looked at (channels with data, samples, gaps). Tables from idfsmec features carry the "
        "facts; a manifest adds age, sex and site."
    )


def _blame(audit: Audit) -> str:
    kinds = {kind_of(name) for name in audit.suspects}
    names = _listing(_names(audit))
    if kinds == {"person"}:
        return f"It may be who was recorded ({names}), not the illness."
    if kinds == {"signal"}:
        return (
            f"It may be the amplifier or the body and not the brain ({names}): check how "
            "recordings were made."
        )
    return f"It may be the amplifier, not the illness ({names})."


def _names(audit: Audit) -> list[str]:
    return [say_variable(name) for name in audit.variables["variable"] if name in audit.suspects]


def _groups(audit: Audit, counts: bool = False) -> str:
    shown = audit.classes
    if counts:
        shown = [f"{n} {name}" for n, name in zip(audit.n_people, audit.classes, strict=True)]
    return _listing(shown)


def _area(figure: dict[str, Any]) -> str:
    return f"AUC {figure['auc']:.2f} ({figure['low']:.2f} to {figure['high']:.2f})"


def _listing(names: Sequence[str], most: int = 4) -> str:
    shown = list(names)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
