"""Confounding: what is known of each subject and recording, and the EEG adjusted for it.

Variables come from the acquisition facts of the recordings, the manifest and the table itself. Who
was recorded (age, sex, site, ...) and how it was recorded are two families. The unit is a subject
within a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special
from scipy.stats import rankdata

from idfsmec.audit.association import N_PERMUTATIONS, Fact, judge_family, products
from idfsmec.errors import InputError, find_name
from idfsmec.metrics import (
    Codes,
    Floats,
    auc_by_fold,
    auc_from_ranks,
    auc_interval,
    concordance,
    concordance_interval,
    draw_within_classes,
    fold_interval,
    mean_auc,
    weighted_aucs,
)
from idfsmec.prediction.samples import Samples
from idfsmec.solver.logistic import fit_logistic
from idfsmec.solver.scaling import Scaling
from idfsmec.table import FeatureTable
from idfsmec.table.files import column_names, read_frame
from idfsmec.table.target import DIAGNOSIS

#: Facts that come from the device, with their words, and those that a body may have a part in.
_DEVICE = {
    "n_channels": "number of EEG channels",
    "n_recorded": "number of channels in the file",
    "sfreq": "sampling rate",
    "duration": "length of the recording",
    "line_freq": "line frequency",
    "line_amplitude": "line noise",
    "upper_edge": "upper edge of the spectrum",
    "quantisation": "step of the converter",
    "reference": "reference",
    "clipped": "share of channel epochs at the amplifier's limits",
    "format": "file format",
    "processing": "processing before features",
    "channels_in_table": "channels with data in the table",
    "n_samples": "number of samples",
}
_HEADER = {
    "months": "months since the study's first recording",
    "other_condition": "header that names another condition",
    "shared_name": "header with another participant's name",
    "generated": "recording that looks generated",
}
_CONTRADICTIONS = ("other_condition", "shared_name", "generated")
_SIGNAL = {
    "amplitude": "amplitude of the EEG",
    "drift": "drift",
    "muscle": "level of the muscle band",
    "muscle_share": "share of windows with muscle activity",
    "blinks": "blinks per minute",
    "dropped": "share of epochs dropped before",
    "interpolated": "share of interpolated channels",
    "missing": "share of missing channels",
}
#: Columns of a manifest that are taken without asking, in small letters. All others may be the
#: illness itself, such as the score of a questionnaire.
_STUDY = {
    *("session", "condition", "device", "amplifier", "cap", "montage", "laboratory", "lab"),
    *("run", "technician", "operator", "year", "batch"),
}
_SUBJECT = {"age", "sex", "gender", "handedness", "hand", "education", "site", "centre", "center"}
_OF_ROWS = {"recording", "epoch", "onset"}
#: Columns that are no circumstance: of the rows, and the labels beside a score.
_NOT_ASKED = _OF_ROWS | {DIAGNOSIS}
#: What every table shows of itself.
_OF_TABLE = ("channels_in_table", "n_samples", "missing")
#: Spread over orders of magnitude, so that logarithms are compared.
_BY_RATIO = {"line_amplitude", "quantisation", "amplitude", "drift", "muscle", "duration"}
#: A text with more levels than this names subjects or files, not a circumstance.
_MOST_LEVELS = 12
_REASON = "gaps: "
#: What parts subjects into strata, within which the EEG's AUC is computed.
_STRATA, _MOST_STRATA = ("device", "amplifier", "cap", "n_recorded"), 6
#: Acquisition matches if log odds differ by less than this many standard deviations, the usual
#: caliper of matching by propensity.
CALIPER = 0.2
#: With a smaller effective number of subjects of a class, matched pairs decide nothing.
FEWEST = 8
#: A match has failed where acquisition's AUC among the pairs is farther than this from one half,
#: or its interval excludes one half. In simulated cohorts this calls 5 % of 1,500 good matches
#: failed (0.05 would call 18 %, 0.15 3 %); 3 % with a mean AUC of 0.73 pass, 53 % with 0.58.
UNMATCHED = 0.1
#: Subjects of each class that a stratum needs for an AUC.
FEWEST_IN_STRATUM = 3
# Penalty of the logistic regression on standardised columns, as scikit-learn's C = 1.
_RIDGE, _STEPS = 1.0, 12
# No value counts as more than so many standard deviations: a single wild value would decide.
_FAR = 6.0


def recording_variables(table: FeatureTable, also: Sequence[str] = ()) -> pd.DataFrame:
    """Collect the acquisition variables of each subject.

    Parameters
    ----------
    table : FeatureTable
        Made by ``idfsmec features``, it has the acquisition facts of every recording; with a
        manifest, also age, sex, site and session. Of a table made by hand, what it shows itself:
        channels with data, samples, share missing.
    also : sequence of str
        Further columns of ``table.rows`` to take. Only those named like a circumstance (age,
        sex, site, device, ...) are taken without asking: others may be the illness itself.

    Returns
    -------
    DataFrame
        One row per subject and label, sorted by both; a column per variable. With a score as the
        target one row per subject.

    Examples
    --------
    >>> from idfsmec.features import extract_table
    >>> from idfsmec.recordings import simulate_cohort
    >>> cohort = simulate_cohort(4, 3, duration=20, detached=0, random_state=0)
    >>> variables = recording_variables(extract_table(cohort.recordings).table)
    >>> variables[["sfreq", "n_channels"]].iloc[0].tolist()
    [250.0, 3.0]
    """
    samples, rows = _sample_facts(table), pd.DataFrame() if table.rows is None else table.rows
    also = [
        find_name(name, map(str, rows), f"the table has no column {name!r} beside its features")
        for name in also
    ]
    for name in map(str, rows):
        if _is_taken(name, also):
            samples[name] = rows[name].to_numpy()
    if table.sites is not None:
        samples["site"] = table.sites.to_numpy()
    labels = np.full(len(table), table.target.name) if table.target.is_numeric else table.y
    keys = [table.subjects.astype(str).to_numpy(), np.asarray(labels)]
    groups, observed = samples.groupby(keys), table.observed.groupby(keys)
    columns: dict[str, pd.Series] = {
        name: groups[name].mean()
        if pd.api.types.is_numeric_dtype(samples[name])
        else groups[name].agg(_most_frequent)
        for name in map(str, samples)
    }
    columns["channels_in_table"] = observed.any().sum(axis=1).astype(float)
    columns["n_samples"] = observed.size().astype(float)
    columns["missing"] = 1.0 - observed.mean().mean(axis=1)
    return pd.DataFrame(columns).rename_axis(["subject", "label"])


def read_columns(path: str | PathLike[str]) -> FeatureTable:
    """Read any table with ``subject`` and ``label``, such as embeddings of a pretrained model.

    Where no column is of the form ``<channel>__<feature>``, all columns of numbers are features of
    one channel ``columns``; texts, ``site`` and circumstances such as age are about rows.
    """
    file = Path(path)
    if not file.is_file():
        return FeatureTable.read(file)  # which names what is wrong
    names = column_names(file)
    if not {"subject", "label"} <= set(names) or any("__" in name for name in names):
        return FeatureTable.read(file)
    frame = read_frame(file)
    beside = [
        name
        for name in frame.columns.drop(["subject", "label", "site"], errors="ignore")
        if name in _OF_ROWS
        or _is_taken(name, ())
        or not pd.api.types.is_numeric_dtype(frame[name])
    ]
    features = frame.drop(columns=[*beside, "subject", "label", "site"], errors="ignore")
    if features.empty:
        raise InputError(f"{file}: has no column of numbers to audit.")
    return FeatureTable(
        features.add_prefix("columns__").astype(np.float64),
        frame["label"],
        frame["subject"],
        sites=frame.get("site"),
        rows=frame[beside] if beside else None,
    )


def encode_variables(
    table: FeatureTable, also: Sequence[str] = ()
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the variables of a table as numbers, a row per subject, and what else is known.

    Columns are (variable, level), one for each level of a text; those that are equal for all are
    left out. A value that is not known is the median, and has a column that says so. ``described``
    says whether the table has acquisition facts, ``unused`` which columns are not tested,
    ``named`` which texts have too many levels to be; ``strata`` has the level of each subject by
    variable, ``headers`` which subjects have a header that contradicts the study.
    """
    frame = recording_variables(table, also)
    encoded = {str(name): _encode(str(name), frame[name]) for name in frame}
    beside = [] if table.rows is None else [str(name) for name in table.rows.columns]
    about = {
        "described": bool(_described_recordings(table))
        or any(family_of(n) == "acquisition" and n not in _OF_TABLE for n in map(str, frame)),
        "unused": [n for n in beside if n not in _NOT_ASKED and not _is_taken(n, also)],
        "named": [
            name
            for name, columns in encoded.items()
            if columns.empty and frame[name].nunique() > _MOST_LEVELS
        ],
        "strata": {} if table.target.is_numeric else _strata(frame),
        "target": table.target.name,
        "headers": {
            name: sorted(set(frame.index[frame[name] > 0].get_level_values("subject")))
            for name in _CONTRADICTIONS
            if name in frame
        },
    }
    return pd.concat(encoded, axis=1, names=["variable", "level"]), about


def _strata(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the level of each subject in variables that form a few strata."""
    strata = {}
    for name in [name for name in map(str, frame) if name.lower() in _STRATA]:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        texts = frame[name].map("{:g}".format if numeric else str)
        levels = texts.mask(frame[name].isna(), "not known").tolist()
        if 2 <= len(set(levels)) <= _MOST_STRATA:
            strata[name] = levels
    return strata


def kind_of(name: str) -> str:
    """Return the kind of a variable; the participant's body also affects the kind signal.

    A column that a user has named and nobody knows, such as medication, describes subjects.
    """
    if name in _SIGNAL or name.startswith(_REASON):
        return "signal"
    if name in _DEVICE:
        return "device"
    return "study" if name in _HEADER or name.lower() in _STUDY else "subject"


def say_variable(name: str) -> str:
    """Return the label of a variable."""
    if name.startswith(_REASON):
        return f"missing channels ({name.removeprefix(_REASON).removeprefix('detected: ')})"
    return (_DEVICE | _SIGNAL | _HEADER).get(name, name)


def _is_taken(name: str, also: Sequence[str]) -> bool:
    return name in also or name.lower() in _STUDY | _SUBJECT


def _described_recordings(table: FeatureTable) -> list[Mapping[str, Any]]:
    recordings = table.info.get("recordings") or []
    return [each for each in recordings if isinstance(each, Mapping) and each.get("facts")]


def _sample_facts(table: FeatureTable) -> pd.DataFrame:
    """Facts of the recording of each sample; no column where there are none."""
    recordings = _described_recordings(table)
    if not recordings:
        return pd.DataFrame(index=range(len(table)))
    # Shares of missing channels by reason, the one entry that is a mapping, get a column each.
    frame = pd.json_normalize([dict(recording["facts"]) for recording in recordings], sep=": ")
    frame = frame.drop(columns="gaps", errors="ignore")
    shares = [name for name in map(str, frame) if name.startswith(_REASON)]
    frame[shares] = frame[shares].fillna(0.0)
    of_samples = frame.reindex(_recording_of(table, recordings)).reset_index(drop=True)
    return of_samples.dropna(axis="columns", how="all")


def _recording_of(table: FeatureTable, recordings: list[Mapping[str, Any]]) -> Codes:
    """Position of each sample's recording among those with facts; -1 where it is not there."""
    if table.rows is not None and "recording" in table.rows.columns:
        key, names = "recording", table.rows["recording"].astype(str)
    else:
        sizes = [int(recording.get("rows") or 0) for recording in recordings]
        if sum(sizes) == len(table):
            return np.repeat(np.arange(len(recordings)), sizes)
        # Some samples were taken out: a subject's first recording stands for all of theirs.
        key, names = "subject", table.subjects.astype(str)
    first = {str(each.get(key)): i for i, each in reversed(list(enumerate(recordings)))}
    return np.array([first.get(name, -1) for name in names], dtype=np.intp)


def _most_frequent(values: pd.Series) -> Any:
    texts = values.dropna().astype(str)
    modes = texts[texts != ""].mode()  # a blank cell is not known
    return modes.iloc[0] if len(modes) else None


def _encode(name: str, values: pd.Series) -> pd.DataFrame:
    """Columns of a variable by level; none where it is the same for all or names subjects."""
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.astype(float).fillna(values.median())
        positive = numbers[numbers > 0]
        if name in _BY_RATIO and len(positive):
            numbers = numbers.clip(lower=1e-3 * positive.median()).apply(np.log10)
        columns = pd.DataFrame({"": numbers})
    else:
        columns = pd.get_dummies(values, dtype=float)
        if columns.shape[1] > _MOST_LEVELS:
            return columns.iloc[:, :0]
        if columns.shape[1] == 2:  # one column says all
            columns = columns.iloc[:, 1:]
    if values.isna().any():
        columns = columns.assign(**{"not known": values.isna().astype(float)})
    spread = columns.max() - columns.min()
    return columns.loc[:, spread > 1e-9 * columns.abs().max()]


@dataclass(frozen=True)
class LabelledSubjects:
    """Subjects within labels: a subject with two labels counts once within each.

    ``member`` is the subject of each sample, ``y`` the class or score of each subject;
    ``n_classes`` is 1 for a score.
    """

    member: Codes
    y: NDArray[Any]
    n_classes: int

    @classmethod
    def of(cls, table: Samples) -> LabelledSubjects:
        """Find the subjects of a table."""
        if table.numeric:
            return cls(table.subjects, table.subject_scores, 1)
        cells, member = np.unique(table.subjects * table.n_classes + table.y, return_inverse=True)
        y = (cells % table.n_classes).astype(np.intp)
        return cls(member.astype(np.intp), y, table.n_classes)

    @property
    def is_scored(self) -> bool:
        """Whether y is a score."""
        return self.n_classes == 1

    @property
    def target(self) -> Floats:
        """What facts are tested against: each class, one of two, or the ranks of the score."""
        if self.is_scored:
            return np.asarray(rankdata(self.y)[:, None])
        classes = np.arange(self.n_classes == 2, self.n_classes)
        return np.asarray((self.y[:, None] == classes).astype(float))

    @property
    def alike(self) -> Codes:
        """The class of each subject, or the quarter of the scores."""
        if not self.is_scored:
            return self.y
        return np.asarray((rankdata(self.y) - 0.5) * 4 // self.y.size, dtype=np.intp)

    def of_subjects(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give each subject the value of their samples, which all have the same."""
        return values[np.unique(self.member, return_index=True)[1]]

    def mean(self, values: Floats) -> Floats:
        """Mean over the samples of each subject that are not NaN, (n_subjects, n_columns)."""
        return pd.DataFrame(values).groupby(self.member).mean().to_numpy()

    def permute(
        self, rng: np.random.Generator, within: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Permute the labels of the subjects; within sites, if those of the samples are given."""
        site_of = np.zeros(self.y.size) if within is None else self.of_subjects(within)
        permuted = self.y.copy()
        for site in np.unique(site_of):
            permuted[site_of == site] = rng.permutation(self.y[site_of == site])
        return permuted


#: The families of facts: how subjects were recorded, and who.
FAMILIES = ("acquisition", "participants")


def family_of(name: str) -> str:
    """Return the family of a variable."""
    return FAMILIES[kind_of(name) == "subject"]


def judge_facts(
    known: Mapping[str, Fact],
    subjects: LabelledSubjects,
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> dict[str, Any]:
    """Test all facts by family, and describe each by its AUC between a class and the rest.

    A fact whose extremes are associated more strongly than its values is described by its
    distance from the median. ``critical_p`` is what a single test of a family had to reach.
    """
    facts: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    critical: dict[str, float] = {}
    for family in FAMILIES:
        of_family = {name: fact for name, fact in known.items() if family_of(name) == family}
        if not of_family:
            continue
        tests = judge_family(of_family, subjects.target, n_permutations=n_permutations, seed=seed)
        critical[family] = tests.critical_p
        pairs += [{**pair, "family": family} for pair in tests.pairs]
        for test in tests.facts:
            described = _describe_fact(known[test["variable"]], test["shape"], subjects)
            kind = kind_of(test["variable"])
            facts.append({**test, "family": family, "kind": kind, **described})
    return {"facts": facts, "pairs": pairs, "critical_p": critical}


def _describe_fact(fact: Fact, shape: str, subjects: LabelledSubjects) -> dict[str, Any]:
    """Return the AUC of a fact, oriented to at least 0.5, by the class and level that differ most.

    ``class`` and ``higher`` say in which class it is higher or lower.
    """
    ranks, y = fact.shapes[shape], subjects.y
    if subjects.is_scored:
        aucs = np.array([[concordance(column, y) for column in ranks.T]])
    else:
        member = (y == np.arange(subjects.n_classes)[:, None]).astype(float)
        aucs = auc_from_ranks(ranks, member)
    # With two classes both rows say the same; the one above one half is kept.
    distance = aucs - 0.5 if subjects.n_classes == 2 else np.abs(aucs - 0.5)
    k, best = np.unravel_index(np.argmax(distance), distance.shape)
    auc = float(aucs[k, best])
    oriented = max(auc, 1.0 - auc)
    low, high = _auc_interval(oriented, y == k, subjects.is_scored)
    where = {"level": fact.levels[best], "class": int(k), "higher": auc >= 0.5}
    return {**where, "auc": oriented, "low": low, "high": high}


def _auc_interval(value: float, member: NDArray[np.bool_], is_scored: bool) -> tuple[float, float]:
    n, n_class = member.size, int(member.sum())
    if is_scored:
        return concordance_interval(value, n)
    return auc_interval(value, n_class, n - n_class)


def adjusting_columns(facts: Mapping[str, Fact], units: Sequence[Sequence[str]]) -> Floats:
    """Return columns of facts and pairs for models that adjust for them.

    Each number enters with its distance from the median, each pair with its products.
    """
    columns: list[Floats] = []
    for unit in units:
        members = [facts[name] for name in unit]
        for fact in members:
            columns += [fact.columns, *([fact.distance[:, None]] if fact.is_number else [])]
        if len(members) == 2:
            columns.append(products(*(fact.ranks - fact.ranks.mean(axis=0) for fact in members)))
    return np.column_stack(columns)


def held_out_auc(values: Floats, y: NDArray[Any], fold_of: Codes, n_classes: int) -> float:
    """Return the AUC of facts together, by a logistic regression on held-out subjects.

    Of a score (``n_classes`` is 1) the concordance, by a ridge regression.
    """
    decisions = np.zeros((y.size, n_classes))
    for fold in np.unique(fold_of):
        train, test = fold_of != fold, fold_of == fold
        if n_classes == 1:
            decisions[test, 0] = _predicted(values[train], rankdata(y[train]), values[test])
        else:
            decisions[test] = _log_odds(values[train], y[None, train], values[test], n_classes)[0]
    return auc_of_subjects(decisions, y)["auc"]


def auc_of_subjects(decisions: Floats, y: NDArray[Any]) -> dict[str, float]:
    """AUC of decisions, one row per subject, with its interval; see ``metrics.auc_interval``.

    With one column y is a score, and the AUC the concordance.
    """
    is_scored = decisions.shape[1] == 1
    auc = concordance(decisions[:, 0], y) if is_scored else mean_auc(decisions, y)
    least = 0 if is_scored else np.bincount(y).argmin()
    low, high = _auc_interval(auc, y == least, is_scored)
    return {"auc": auc, "low": low, "high": high}


def auc_of_folds(decisions: Floats, y: NDArray[Any], fold_of: Codes) -> dict[str, float]:
    """AUC of decisions on held-out subjects, mean over folds; see ``metrics.fold_interval``.

    Where fewer than two folds have more than one class or score, it is that of all subjects.
    """
    aucs = auc_by_fold(decisions, y, fold_of)
    if np.isfinite(aucs).sum() < 2:
        return auc_of_subjects(decisions, y)
    interval = fold_interval(aucs, n_subjects=y.size)
    return {"auc": interval.mean, "low": interval.low, "high": interval.high}


def separation_p(decisions: Floats, y: NDArray[Any]) -> float:
    """Return the one-sided p-value of the rank test of held-out decisions between the classes.

    The smallest of the classes against the rest counts, times their number. With one column y is a
    score.
    """
    (n, k), p = decisions.shape, []
    target = LabelledSubjects(np.arange(n), y, k).target
    values = decisions[:, 1:] - decisions[:, :1] if k == 2 else decisions
    for ranks, member in zip(rankdata(values, axis=0).T, target.T, strict=True):
        if ranks.std() > 0 < member.std():
            p.append(special.ndtr(-np.sqrt(n - 1) * np.corrcoef(ranks, member)[0, 1]))
    return float(min(1.0, len(p) * min(p))) if p else 1.0


def propensity(values: Floats, y: Codes, n_classes: int) -> Floats:
    """Log odds of every class, of shape (n_subjects, n_classes), by a model of all subjects.

    Subjects with the same values have the same log odds, which models of folds would not give.
    """
    return np.asarray(_log_odds(values, y[None], values, n_classes)[0])


def _log_odds(values: Floats, labels: Codes, new: Floats, n_classes: int) -> Floats:
    """Log odds of new subjects by a model of each labelling and class against the rest."""
    scaling = Scaling.learn(values)
    scaled = (np.clip(scaling.apply(rows), -_FAR, _FAR) for rows in (values, new))
    X, Z = (np.column_stack([rows, np.ones(len(rows))]) for rows in scaled)
    log_odds = np.zeros((len(labels), len(new), n_classes))
    for k in range(1 if n_classes == 2 else 0, n_classes):
        log_odds[:, :, k] = _fit(X, labels == k) @ Z.T
    return log_odds


def _predicted(values: Floats, ranks: Floats, new: Floats) -> Floats:
    """Predict the ranks of a score for new subjects by a ridge regression."""
    scaling = Scaling.learn(values)
    X, Z = (np.clip(scaling.apply(rows), -_FAR, _FAR) for rows in (values, new))
    products = X.T @ X + _RIDGE * np.eye(X.shape[1])
    return np.asarray(Z @ np.linalg.solve(products, X.T @ (ranks - ranks.mean())))


def _fit(X: Floats, positive: NDArray[np.bool_]) -> Floats:
    """Weights of ridge logistic regressions, one for each row of ``positive``.

    Classes weigh alike; the last column is the intercept, which bears no penalty.
    """
    n, d = X.shape
    share = positive.mean(axis=1, keepdims=True).clip(1 / (2 * n), 1 - 1 / (2 * n))
    importance = np.where(positive, 0.5 / share, 0.5 / (1 - share))
    penalty = np.append(np.full(d - 1, _RIDGE), 1e-6)
    return fit_logistic(X, positive, importance, penalty, max_iter=_STEPS)[0]


def among_matched(eeg: Floats, acquisition: Floats, y: Codes) -> dict[str, Any]:
    """AUC of the EEG over pairs of subjects of different classes whose acquisition matches.

    A subject's acquisition is summed up by the log odds that the associated variables give (a
    propensity score); pairs within the caliper are compared, and no others (Austin, "Optimal
    caliper widths for propensity-score matching", Pharmaceutical Statistics 10:150-161, 2011).
    ``acquisition_auc`` is that of the acquisition among the same pairs, near one half where they
    match indeed; else the match has ``failed``. ``n_subjects`` have a match, of each class;
    ``n_effective`` is Kish's effective number of them, (sum w)^2 / sum w^2 with a subject's number
    of pairs as w (Kish, Survey Sampling, 1965): few subjects who are in most of the pairs count
    as few. ``estimable`` says whether it is at least 8 in each class.
    """
    centred = acquisition - acquisition.mean(axis=1, keepdims=True)
    reach = CALIPER * float(np.sqrt(centred.var(axis=0).mean()))
    apart = np.sqrt(((centred[:, None] - centred[None]) ** 2).mean(axis=2))
    near = (apart <= reach) & (y[:, None] != y)
    n_pairs = [near[y == k].sum(axis=1) for k in range(eeg.shape[1])]
    effective = [float(n.sum() ** 2 / max((n**2).sum(), 1)) for n in n_pairs]
    matched = {
        "n_subjects": [int((n > 0).sum()) for n in n_pairs],
        "n_effective": effective,
        "n_pairs": int(near.sum() // 2),
        "estimable": min(effective) >= FEWEST,
    }
    if not matched["estimable"]:
        return matched
    n_resamples = int(np.clip(4e7 / y.size**2, 100, 1000))
    drawn = draw_within_classes(y, n_resamples, np.random.default_rng(0))
    weights = np.vstack([np.ones(y.size), drawn])
    aucs = weighted_aucs(eeg, y, weights, near)
    of_acquisition = weighted_aucs(acquisition, y, weights, near)
    low, high = np.nanquantile(aucs, [0.025, 0.975])
    least, most = np.nanquantile(of_acquisition, [0.025, 0.975])
    return matched | {
        "auc": float(aucs[0]),
        "low": float(low),
        "high": float(high),
        "acquisition_auc": float(of_acquisition[0]),
        "failed": bool(abs(of_acquisition[0] - 0.5) > UNMATCHED or not least <= 0.5 <= most),
    }


def auc_in_strata(eeg: Floats, levels: Sequence[str], y: Codes) -> list[dict[str, Any]]:
    """AUC of the EEG among subjects of one level each, with its interval; None for too few."""
    rows = []
    for level in dict.fromkeys(sorted(levels)):
        here = np.array([each == level for each in levels])
        counts = np.bincount(y[here], minlength=eeg.shape[1])
        row: dict[str, Any] = {"level": level, "n_subjects": counts.tolist(), "auc": None}
        if counts.min() >= FEWEST_IN_STRATUM:
            row |= auc_of_subjects(eeg[here], y[here])
        rows.append(row)
    return rows


def residuals(
    X: Floats, nuisance: Floats, subjects: LabelledSubjects, train: Codes | NDArray[np.bool_]
) -> Floats:
    """Regress the nuisance variables out of every column that enough subjects have.

    Slopes are those of the means of the subjects trained on, shrunk by 1 - 1/F: slopes that are
    noise would bring into the samples held out what they should take away (Hamdan et al.,
    "Confound-leakage", GigaScience 12:giad071, 2023).
    """
    known = np.zeros(len(nuisance), dtype=bool)
    known[subjects.member[train]] = True
    spread = nuisance[known].std(axis=0)
    used = spread > 1e-12
    centred = nuisance[:, used] - nuisance[known][:, used].mean(axis=0)
    Z = np.clip(centred / spread[used], -_FAR, _FAR)
    means, left = subjects.mean(X), X.copy()
    patterns, pattern_of = np.unique(
        ~np.isnan(means) & known[:, None], axis=1, return_inverse=True
    )
    for pattern, there in enumerate(patterns.T):
        columns = np.flatnonzero(pattern_of.ravel() == pattern)
        if there.sum() > 2 * Z.shape[1] + 2:
            slopes = _shrunk_slopes(Z[there], means[np.ix_(there, columns)])
            left[:, columns] -= (Z @ slopes)[subjects.member]
    return left


def _shrunk_slopes(Z: Floats, values: Floats) -> Floats:
    """Slopes of each column on the nuisance variables, shrunk by their F statistic."""
    centred, Z = values - values.mean(axis=0), Z - Z.mean(axis=0)
    # A little ridge, for variables that say the same.
    products = Z.T @ Z + 1e-3 * len(Z) * np.eye(Z.shape[1])
    slopes = np.linalg.solve(products, Z.T @ centred)
    left = ((centred - Z @ slopes) ** 2).sum(axis=0)
    explained = np.maximum((centred**2).sum(axis=0) - left, 1e-300)
    freedom = len(Z) - Z.shape[1] - 1
    return np.asarray(slopes * np.maximum(0.0, 1 - Z.shape[1] * left / (freedom * explained)))
