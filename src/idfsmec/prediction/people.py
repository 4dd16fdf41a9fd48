"""What a model says about people it has not seen, and how far one can rely on it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._columns import join_column, split_column
from idfsmec.errors import InputError
from idfsmec.features import extract_table
from idfsmec.montage import standard_name
from idfsmec.prediction._interval import Intervals
from idfsmec.prediction.harmonizer import harmonize_new
from idfsmec.prediction.model import Model
from idfsmec.progress import Listener
from idfsmec.recordings import Recording
from idfsmec.recordings.reading import FileLoader, files_of
from idfsmec.table import FeatureTable

Array = NDArray[np.float64]

#: Coverage of the intervals.
LEVEL = 0.95
#: Who has a smaller share of the model's channels is warned about.
LEAST_SHARE = 0.3
#: Who is farther from the centre than this share of the training people is warned about.
FAR = 0.99
_MOST_NAMED = 5
#: The label of recordings, which have none.
UNLABELLED = "unknown"


@dataclass(frozen=True)
class PersonPrediction:
    """What a model says about one person.

    Attributes
    ----------
    person : str
    predicted : object
        The most probable class; None if nothing could be said.
    probability, low, high : float
        Of that class: the mean over the person's epochs, and an interval of the frequency of the
        class among people about whom as much is said, from people who were held out with as many
        channels (:func:`idfsmec.evaluation.train_model`). Of a model that was not measured the
        interval is that over resampled epochs alone, and NaN for one epoch.
    probabilities : dict
        Of every class.
    epochs : tuple of float
        Probability of the predicted class in each epoch.
    share_present : float
        Share of the model's channels that is there, over all epochs.
    votes : dict
        What each channel adds in favour of the predicted class, in log odds, the loudest first;
        empty if the model cannot tell.
    distance, nearer : float
        How far the person is from the centre of the training people in the space of factors, and
        the share of them that is nearer.
    warnings : tuple of str
        Why not to rely on it.
    """

    person: str
    predicted: Any = None
    probability: float = np.nan
    low: float = np.nan
    high: float = np.nan
    probabilities: dict[Any, float] = field(default_factory=dict)
    epochs: tuple[float, ...] = ()
    share_present: float = 0.0
    votes: dict[str, float] = field(default_factory=dict)
    distance: float = np.nan
    nearer: float = np.nan
    warnings: tuple[str, ...] = ()

    @property
    def loudest(self) -> str:
        """The channels that spoke loudest, with the sign of what they said."""
        first = list(self.votes.items())[:_MOST_NAMED]
        return ", ".join(f"{channel} {vote:+.2f}" for channel, vote in first)


@dataclass(frozen=True)
class Predictions:
    """What a model says about several people.

    Attributes
    ----------
    people : tuple of PersonPrediction
    notes : tuple of str
        What was done to the columns: channels that the model does not know, or that go by other
        names.
    """

    people: tuple[PersonPrediction, ...]
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """One row per person."""
        rows = [
            {
                "person": one.person,
                "predicted": one.predicted,
                "probability": one.probability,
                "low": one.low,
                "high": one.high,
                **{f"probability of {label}": p for label, p in one.probabilities.items()},
                "epochs": len(one.epochs),
                "channels present": one.share_present,
                "loudest channels": one.loudest,
                "distance": one.distance,
                "training people nearer": one.nearer,
                "warnings": "; ".join(one.warnings),
            }
            for one in sorted(self.people, key=lambda one: not one.epochs)
        ]
        frame = pd.DataFrame(rows)
        order = {one.person: place for place, one in enumerate(self.people)}
        return frame.sort_values("person", key=lambda who: who.map(order), ignore_index=True)


def predict_people(model: Model, table: FeatureTable) -> Predictions:
    """Predict the class of each person of a table.

    Columns are matched by name; channels may go by any spelling of their standard names. What
    the model knows and the table lacks is missing, what the model does not know is ignored. A
    model that harmonizes brings sites it has not seen (a table without sites is one) to the
    others' location and scale by their own samples, if at least ten come at once.

    Parameters
    ----------
    model : Model
    table : FeatureTable
        Its labels are not looked at.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        The table has no channel of the model, or none of its features.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable
    >>> from idfsmec.prediction import fit_model, predict_people
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["HC", "MDD"], 40)
    >>> X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["F3__a", "Pz__a"])
    >>> X += 3 * (y == "MDD")[:, None]
    >>> model = fit_model(FeatureTable(X, y, np.arange(80) // 4))
    >>> other = pd.DataFrame({"EEG F3-LE__a": [3.1, 2.9]})
    >>> other_cap = FeatureTable(other, ["?", "?"], ["new", "new"])
    >>> said = predict_people(model, other_cap)
    >>> said.people[0].predicted, said.people[0].share_present
    ('MDD', 0.5)
    """
    X, notes = _match(model, table)
    X, about_sites = harmonize_new(model.harmonizer, X, table.sites)
    codes, names = pd.factorize(table.subjects.to_numpy())
    intervals = Intervals(model.performance.get("held_out"), LEVEL)
    people = [
        _person(model, str(name), X[codes == code], intervals) for code, name in enumerate(names)
    ]
    if not any(one.epochs for one in people):
        raise InputError("No sample has a channel that the model knows with all its features.")
    return Predictions(tuple(people), (*notes, *about_sites, *_other_settings(model, table)))


def extract_people(
    model: Model,
    recordings: Iterable[str | PathLike[str] | Recording],
    *,
    n_jobs: int = 1,
    on_error: str = "raise",
    progress: Listener | None = None,
) -> FeatureTable:
    """Compute the features of recordings as those of the model's training data were.

    Parameters
    ----------
    model : Model
    recordings : iterable of path-like or Recording
        Files that MNE opens. A file is a person, called like the file without its ending.
    n_jobs, on_error, progress
        As in :func:`idfsmec.features.extract_table`; recordings without any row are warned of.

    Returns
    -------
    FeatureTable
        For :func:`predict_people`; files have the label ``"unknown"``.
    """
    settings = model.feature_settings()
    given = list(recordings)
    stems = [Path(one).stem for one in given if not isinstance(one, Recording)]
    found = [one if isinstance(one, Recording) else _recording(Path(one), stems) for one in given]
    made = extract_table(found, settings, n_jobs=n_jobs, on_error=on_error, progress=progress)
    for one in made.skipped:
        why = one.error or "no channel with EEG in it"
        warnings.warn(f"{one.source}: nothing is said about it: {why}", UserWarning, stacklevel=2)
    return made.table


def _recording(path: Path, stems: Sequence[str]) -> Recording:
    if not path.exists():
        raise InputError(f"{path}: there is no such file.")
    name = path.stem if stems.count(path.stem) == 1 else str(path)
    return Recording(name, UNLABELLED, FileLoader(path), str(path), files=files_of(path))


def _match(model: Model, table: FeatureTable) -> tuple[pd.DataFrame, list[str]]:
    """The table's columns as the model takes them, and what had to be done."""
    renamed = _same_places(model.channels, table.channels)
    known = set(model.channels)
    names = {}
    for column in table.X.columns:
        channel, feature = split_column(str(column))
        names[column] = join_column(renamed.get(channel, channel), feature)
    unknown = [one for one in table.channels if renamed.get(one, one) not in known]
    if len(unknown) == len(table.channels):
        raise InputError(
            f"There is no common channel: the model has {_some(model.channels)}, "
            f"the table {_some(table.channels)}."
        )
    X = table.X.rename(columns=names)
    if not set(X.columns) & set(model.columns):
        raise InputError(
            "There is no common feature: the model has "
            f"{_some(dict.fromkeys(split_column(one)[1] for one in model.columns))}, the table "
            f"{_some(table.features)}."
        )
    notes = []
    if renamed:
        spelt = [f"{old} is {new}" for old, new in renamed.items()]
        notes.append(f"channels matched by their places: {_some(spelt)}")
    if unknown:
        notes.append(f"channels that the model does not know, ignored: {_some(unknown)}")
    there = {renamed.get(channel, channel) for channel in table.channels}
    absent = [channel for channel in model.channels if channel not in there]
    if absent:
        notes.append(f"channels of the model that are not there: {_some(absent)}")
    return X.reindex(columns=list(model.columns)), notes


def _same_places(wanted: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Given channels that stand under another spelling in the model, each place once."""
    places = {standard_name(name) or name.casefold(): name for name in wanted}
    renamed, taken = {}, set(given)
    for name in given:
        same = places.get(standard_name(name) or name.casefold())
        if name not in wanted and same is not None and same not in taken:
            renamed[name] = same
            taken.add(same)
    return renamed


def _other_settings(model: Model, table: FeatureTable) -> list[str]:
    """Say where the table's features were computed otherwise; who says nothing is believed."""
    keys = ("sfreq", "band_pass", "epoch", "bands", "unit", "welch_window", "nsi_window")
    differ = [
        f"{key} {table.info[key]} instead of {model.settings[key]}"
        for key in keys
        if key in table.info and key in model.settings and table.info[key] != model.settings[key]
    ]
    if not differ:
        return []
    return [f"the table's features were computed otherwise than the model's: {'; '.join(differ)}"]


def _person(model: Model, name: str, X: pd.DataFrame, intervals: Intervals) -> PersonPrediction:
    observed = _observed(model, X)
    share = float(observed.mean())
    X = X.iloc[np.flatnonzero(observed.any(axis=1))]
    if not len(X):
        return PersonPrediction(name, warnings=("no channel of the model is there",))
    with warnings.catch_warnings():
        # Channels without a weight say nothing: such samples get the classes' shares.
        warnings.simplefilter("ignore", UserWarning)
        each = model.estimator.predict_proba(X)
    mean = each.mean(axis=0)
    best = int(mean.argmax())
    low, high = intervals.of(each[:, best], best, share)
    distance = float(np.median(model.distances(X)))
    reference = np.asarray(model.reference["distances"])
    return PersonPrediction(
        name,
        model.classes[best],
        float(mean[best]),
        low,
        high,
        dict(zip(model.classes, map(float, mean), strict=True)),
        tuple(float(one) for one in each[:, best]),
        share,
        _votes(model, X, best),
        distance,
        float((reference < distance).mean()),
        tuple(_doubts(model, share, distance)),
    )


def _observed(model: Model, X: pd.DataFrame) -> NDArray[np.bool_]:
    """Which channels are there with all their features: (n_samples, n_channels)."""
    codes, _ = pd.factorize(np.array([split_column(c)[0] for c in model.columns], dtype=object))
    there = X.notna().to_numpy()
    return np.column_stack([there[:, codes == code].all(axis=1) for code in np.unique(codes)])


def _votes(model: Model, X: pd.DataFrame, best: int) -> dict[str, float]:
    if not hasattr(model.estimator, "channel_votes"):
        return {}
    votes = np.asarray(model.estimator.channel_votes(X))
    of_class = votes[:, :, best] if votes.ndim == 3 else votes * (1.0 if best else -1.0)
    heard = ~np.isnan(of_class)
    counts = heard.sum(axis=0)
    means = np.where(heard, of_class, 0.0).sum(axis=0) / np.maximum(counts, 1)
    order = np.argsort(-np.abs(means), kind="stable")
    return {model.channels[i]: float(means[i]) for i in order if counts[i]}


def _doubts(model: Model, share: float, distance: float) -> list[str]:
    found = []
    limit = float(np.quantile(model.reference["distances"], FAR))
    if distance > limit:
        found.append(
            f"unlike the training data: {distance:.1f} from their centre in the space of factors, "
            f"where {FAR:.0%} of the training people are within {limit:.1f}"
        )
    if share < LEAST_SHARE:
        found.append(f"only {share:.0%} of the model's channels are there")
    return found


def _some(names: Iterable[object]) -> str:
    listed = [str(name) for name in names]
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more
