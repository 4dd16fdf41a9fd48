"""The one way from a recording to rows of numbers; every entry into the package ends here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from idfsmec._parallel import available_threads
from idfsmec._validation import (
    CheckedEstimator,
    Constraints,
    SequenceOf,
    number,
    validate_params,
)
from idfsmec.features.acquisition import acquisition_facts, signal_facts
from idfsmec.features.families import EpochSignal
from idfsmec.features.settings import FeatureSettings
from idfsmec.features.signals import Signals, interpolate, prepare_epochs, read_signals
from idfsmec.missing.detection import find_reasons, unusable
from idfsmec.missing.line_noise import LineNoise, remove_line_noise
from idfsmec.recordings import Recording
from idfsmec.table.columns import CONDITION, join_column, split_column

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Right and left.
_FRONTAL_PAIRS = (
    *(("Fp2", "Fp1"), ("AF4", "AF3"), ("AF8", "AF7"), ("F2", "F1")),
    *(("F4", "F3"), ("F6", "F5"), ("F8", "F7"), ("F10", "F9")),
)
# Large enough that threads do not wait for the interpreter, small enough to share the work evenly.
_BLOCK_SAMPLES = 400_000


# --- from clean epochs to numbers ------------------------------------------------------------


def compute_features(
    epochs: NDArray[np.floating],
    sfreq: float,
    settings: FeatureSettings | None = None,
    *,
    missing: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], list[str]]:
    """Compute features of filtered epochs: (n_epochs, n_channels, n_outputs), and their names.

    NaN throughout where a channel is missing, flat or not finite. Of features of pairs each side's
    value: their difference is taken where channels have names.
    """
    settings = settings or FeatureSettings()
    names = settings.columns
    features = [feature for feature in settings.chosen if feature.columns(settings)]
    n_epochs, n_channels, n_times = epochs.shape
    values = np.full((n_epochs, n_channels, len(names)), np.nan)

    def compute(block: slice) -> None:
        data = np.ascontiguousarray(epochs[block], dtype=np.float64)
        absent = unusable(data.min(axis=-1), data.max(axis=-1))
        if missing is not None:
            absent |= missing[block]
        if absent.any():
            # Functions, a user's too, never see a flat or broken signal: noise, the same every
            # time, takes its place and the result is thrown away. So none can raise or warn
            # because a channel is missing.
            noise = np.random.default_rng(0).standard_normal(n_times)
            data = np.where(absent[..., np.newaxis], noise, data)
        signal = EpochSignal(data, sfreq, settings, missing=absent)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            outputs = [feature.compute(signal) for feature in features]
        computed = np.concatenate(outputs, axis=-1) if outputs else values[block]
        values[block] = np.where(
            absent[..., np.newaxis] | ~np.isfinite(computed), np.nan, computed
        )

    # NumPy and the FFT let other threads work meanwhile. Epochs do not see each other, so the
    # numbers do not depend on how many threads there are.
    step = max(1, _BLOCK_SAMPLES // max(1, n_channels * n_times))
    with ThreadPoolExecutor(available_threads()) as pool:
        list(pool.map(compute, (slice(i, i + step) for i in range(0, n_epochs, step))))
    return values, names


# --- from a recording to rows ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RecordingFeatures:
    """Features of one recording, and what is known of it.

    Parameters
    ----------
    X : DataFrame of shape (n_rows, n_channels * n_outputs)
        Columns ``<channel>__<feature>``, the index holds the start of each epoch in seconds;
        NaN where the channel is missing.
    channels : list of str
        And pairs of channels, if a feature of pairs is among the features.
    n_epochs : int
        Epochs of the recording.
    epochs : list of int
        The number of each row's epoch in the recording, from 0.
    cells : dict
        Where channels are missing: reason to channel to the numbers of the epochs.
    montage, hint : str
        The montage's name, and the advice of the detection; empty if there is none.
    dropped : dict
        Channels of the file that are not used, with the reason.
    acquisition : dict
        How it was recorded, from the signal before any filter.
    conditions : list of str
        Of each row, of epochs that were cut before.
    metadata : list of dict
        The same for what else MNE's ``epochs.metadata`` has.
    """

    X: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    channels: list[str] = field(default_factory=list)
    n_epochs: int = 0
    epochs: list[int] = field(default_factory=list)
    cells: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    montage: str = ""
    hint: str = ""
    dropped: dict[str, str] = field(default_factory=dict)
    acquisition: dict[str, Any] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """Number of epochs that are rows: those with a channel left."""
        return len(self.epochs)

    @property
    def reasons(self) -> dict[str, dict[str, int]]:
        """Why channels are missing: reason to channel to number of epochs."""
        return {
            reason: {channel: len(epochs) for channel, epochs in hits.items()}
            for reason, hits in self.cells.items()
        }


def extract_recording(
    data: Any,
    settings: FeatureSettings | None = None,
    *,
    sfreq: float | None = None,
    ch_names: Sequence[str] | None = None,
    unit: float | None = None,
) -> RecordingFeatures:
    """Compute the features of one recording, with the reasons why channels are missing.

    1. EEG channels are picked and get their standard names.
    2. Line noise is removed, where the spectrum shows it.
    3. Channels are marked missing in an epoch if ``info["bads"]`` names them, if an annotation
       that begins with ``BAD`` touches the epoch, if the detection finds no EEG in them, or if
       the signal is constant or not finite.
    4. The signal is resampled and filtered. Stretches that belong to missing epochs only are
       bridged before, so that what a loose electrode records does not ring into the epochs in
       which it sat well.
    5. It is cut into epochs. If asked, bad channels are interpolated and the reference is
       changed. The features are computed.

    Parameters
    ----------
    data, settings, sfreq, ch_names, unit
        As in :func:`extract_features`, which gives ``X`` alone.

    Returns
    -------
    RecordingFeatures

    Examples
    --------
    >>> from idfsmec.recordings import simulate_cohort
    >>> from idfsmec.features import extract_recording
    >>> cohort = simulate_cohort(1, 3, duration=30, detached=0, random_state=0)
    >>> extract_recording(cohort.recordings[0]).X.shape
    (3, 54)
    """
    given = partial(read_signals, data, sfreq=sfreq, ch_names=ch_names, unit=unit)
    return _extract(data, settings or FeatureSettings(), given)


def extract_each(
    recording: Recording, settings: Sequence[FeatureSettings]
) -> Iterator[tuple[int, RecordingFeatures | Exception]]:
    """Compute the features of a recording under several settings, each as if it were alone.

    The recording is read once, and a step is not repeated where settings agree on it. Yields the
    number of the settings with features or with the error; those that share steps come together.
    """
    several = len(settings) > 1
    if several:
        recording = replace(recording, load=cache(recording.load))
    kept: dict[str, tuple[Any, Any]] = {}

    def latest(step: str, key: Any, make: Callable[[], Any]) -> Any:
        if step not in kept or kept[step][0] != key:
            kept.pop(step, None)  # before the next one takes memory
            kept[step] = key, make()
        return kept[step][1]

    shared = [_what_is_shared(each) for each in settings]
    for place in sorted(range(len(settings)), key=lambda i: repr(shared[i])):
        try:
            read = partial(read_signals, recording)
            yield place, _extract(recording, settings[place], read, latest if several else None)
        except Exception as error:
            yield place, error


def _what_is_shared(settings: FeatureSettings) -> tuple[Any, ...]:
    """Return what decides line noise, signals, and detection and filters, the dearest first."""
    s = settings
    channels = s.channels, s.autoreject_interpolated
    line_noise = *channels, s.line_freq
    signals = *channels, s.epoch, s.overlap, s.resample
    detection = *signals, s.line_freq, s.band_pass, s.detect, s.typical_amplitude, s.limits
    return line_noise, signals, detection


def _extract(
    data: Any,
    settings: FeatureSettings,
    read: Callable[[FeatureSettings], Signals],
    latest: Callable[[str, Any, Callable[[], Any]], Any] | None = None,
) -> RecordingFeatures:
    """Compute features; ``latest`` may return what a step with the same key has made before."""
    shared = latest or (lambda step, key, make: make())
    of_line_noise, of_signals, of_detection = _what_is_shared(settings)
    recorded: Signals = shared("signals", of_signals, lambda: read(settings))
    settings.check_rate(recorded.sfreq)
    clean, line_noise = shared(
        "line noise",
        of_line_noise,
        lambda: remove_line_noise(
            recorded.data, recorded.sfreq, settings.line_freq, header_freq=recorded.line_freq
        ),
    )
    of_signal = shared("facts", of_line_noise[:-1], lambda: signal_facts(recorded))
    files = data.files if isinstance(data, Recording) else ()
    file_format = files[0].suffix.lower().lstrip(".") if files else ""

    def prepare() -> tuple[Any, Mask, dict[str, Mask], dict[str, Any], str]:
        # Filters change signals in place.
        signals = replace(recorded, data=clean.copy() if latest else clean)
        detected, hint = _detect(recorded, signals, line_noise, settings)
        hits_of = {f"detected: {reason}": hits for reason, hits in detected.items()}
        causes = signals.marked | hits_of
        shape = len(signals.starts), len(signals.names)
        known = np.any([np.zeros(shape, dtype=bool), *causes.values()], axis=0)
        facts = acquisition_facts(recorded, causes, file_format, settings, of_signal)
        epochs, broken = prepare_epochs(signals, known, settings)
        causes["no finite, changing signal"] = broken & ~known
        return epochs, known | broken, causes, facts, hint

    epochs, bad, causes, facts, hint = shared("epochs", of_detection, prepare)
    missing = bad
    if settings.bad_channels != "missing":
        by = {"interpolate": "spline", "interpolate-fields": "MNE"}[settings.bad_channels]
        epochs, missing = interpolate(epochs, bad, recorded.positions, by)
        facts = {**facts, "interpolated": float(np.mean(bad & ~missing))}
    if settings.reference == "average":
        # The mean is that of the channels that are not missing in the epoch.
        present = ~missing[..., np.newaxis]
        total = np.where(present, epochs, 0.0).sum(axis=1, keepdims=True)
        epochs = epochs - total / np.maximum(present.sum(axis=1, keepdims=True), 1)
    by_channel, _ = compute_features(
        epochs, settings.rate(recorded.sfreq), settings, missing=missing
    )
    values, columns, pairs, one_side = _lay_out(by_channel, missing, recorded.names, settings)
    causes = {reason: hits & missing for reason, hits in causes.items()}
    of_pairs = {"a side of the pair is missing": one_side}
    # Epochs that were cut before may have labels beside them: they keep their rows.
    in_memory = recorded.grid is None and not isinstance(data, Recording)
    keep = ~missing.all(axis=1) | in_memory
    index = pd.Index(recorded.starts[keep], name="start")
    numbers = np.arange(len(values)) if recorded.numbers is None else recorded.numbers
    metadata = pd.DataFrame() if recorded.metadata is None else recorded.metadata[keep]
    return RecordingFeatures(
        X=pd.DataFrame(values[keep], columns=columns, index=index),
        channels=[*recorded.names, *pairs],
        n_epochs=len(values),
        epochs=numbers[keep].tolist(),
        conditions=np.array(recorded.conditions)[keep].tolist() if recorded.conditions else [],
        metadata=json.loads(
            metadata.to_json(orient="records", date_format="iso", double_precision=15)
        ),
        cells=_cells(causes, recorded.names, numbers) | _cells(of_pairs, pairs, numbers),
        montage=recorded.channels.montage,
        hint=hint,
        dropped=recorded.channels.dropped,
        acquisition=facts,
    )


def _detect(
    recorded: Signals, clean: Signals, line_noise: LineNoise, settings: FeatureSettings
) -> tuple[dict[str, Mask], str]:
    """Find channels without EEG, as :func:`idfsmec.missing.detect_missing` does, if asked."""
    if not settings.detect or clean.unit is None:  # the limits are in volts
        return {}, ""
    squares = line_noise.rms**2
    if clean.grid is None:
        line = np.sqrt(squares.mean(axis=-1))
    else:
        centres = line_noise.centres
        first = np.searchsorted(centres, clean.grid.begins).clip(max=len(centres) - 1)
        last = np.maximum(np.searchsorted(centres, clean.grid.ends), first + 1)
        means = [squares[:, a:b].mean(axis=1) for a, b in zip(first, last, strict=True)]
        line = np.sqrt(np.array(means))
    return find_reasons(
        recorded.as_epochs(),
        clean.as_epochs(),
        line,
        clean.sfreq,
        clean.positions,
        typical_amplitude=settings.typical_amplitude / clean.unit,
        header_freq=clean.line_freq,
        high_pass=settings.band_pass[0] if settings.band_pass else 0.0,
        limits=settings.limits,
    )


def _lay_out(
    values: Array, missing: Mask, names: Sequence[str], settings: FeatureSettings
) -> tuple[Array, list[str], list[str], Mask]:
    """Lay channels side by side, and behind them pairs, right minus left: values and columns.

    Also the names of the pairs, and where each lacks a side.
    """
    features = [(column, f.of_pairs) for f in settings.chosen for column in f.columns(settings)]
    of_pairs = np.array([paired for _, paired in features], dtype=bool)
    pairs = [pair for pair in _FRONTAL_PAIRS if of_pairs.any() and set(pair) <= set(names)]
    right, left = ([names.index(pair[side]) for pair in pairs] for side in (0, 1))
    joined = ["-".join(pair) for pair in pairs]
    differences = values[:, right][..., of_pairs] - values[:, left][..., of_pairs]
    one_side = missing[:, right] | missing[:, left]
    columns = [join_column(name, out) for name in names for out, paired in features if not paired]
    columns += [join_column(pair, out) for pair in joined for out, paired in features if paired]
    blocks = [
        block.reshape(len(values), np.prod(block.shape[1:], dtype=int))
        for block in (values[..., ~of_pairs], differences)
    ]
    return np.hstack(blocks), columns, joined, one_side


def _cells(
    causes: dict[str, Mask], names: Sequence[str], numbers: NDArray[np.intp]
) -> dict[str, dict[str, list[int]]]:
    """Map reasons to channels to the epochs in which they are missing."""
    return {
        reason: {
            name: numbers[hit].tolist()
            for name, hit in zip(names, hits.T, strict=True)
            if hit.any()
        }
        for reason, hits in causes.items()
        if hits.any()
    }


# --- entries for data in memory --------------------------------------------------------------


def extract_features(
    data: Any,
    settings: FeatureSettings | None = None,
    *,
    sfreq: float | None = None,
    ch_names: Sequence[str] | None = None,
    unit: float | None = None,
) -> pd.DataFrame:
    """Compute features of a recording or of epochs.

    For the same recording and settings the numbers and the missing channels are those of
    ``idfsmec features`` and of :func:`extract_table`.

    Parameters
    ----------
    data : Recording, mne.io.Raw, mne.Epochs or array of shape (n_epochs, n_channels, n_times)
        Of MNE objects the EEG channels are taken, in microvolts. Nothing of it is changed.
    settings : FeatureSettings, optional
        What to compute and how.
    sfreq : float, optional
        Sampling rate in Hz of an array.
    ch_names : sequence of str, optional
        Names of an array's channels, in any spelling; default ``ch000``, ``ch001``, ...
    unit : float, optional
        Volts that one step of an array is, 1e-6 for microvolts: then its features are in
        microvolts and its channels are looked at by the detection, whose limits are in volts.
        By default an array is taken in whatever unit it comes, and channels are missing where
        the signal is constant or not finite.

    Returns
    -------
    DataFrame of shape (n_epochs, n_channels * n_outputs)
        Columns ``<channel>__<feature>`` with standard names (``EEG T3-LE`` is ``T7``); NaN
        where a channel is missing in an epoch. The index holds the start of each epoch in
        seconds, and behind it the columns of ``epochs.metadata``, dates as text; a column
        ``start`` is called ``metadata_start``. Starts are those of the events,
        counted as these are; of an array, one epoch follows the other. Epochs with no channel
        left are left out, but of epochs that are cut already all are kept.

    See Also
    --------
    extract_recording : The same with the reasons why channels are missing.
    extract_table : Many recordings, with labels and subjects.

    Notes
    -----
    A filter distorts the ends of what it filters. Of a Raw that is the ends of the recording;
    epochs that are cut already can only be filtered one by one. So filter before you cut, as
    MNE advises. ``mne.Epochs`` say what was done (``info["highpass"]``, ``info["lowpass"]``),
    and an edge of ``settings.band_pass`` that cuts nothing off that band is left out. An array
    says nothing: it is filtered unless ``band_pass`` is None. The detection, too, sees more in
    signals as they were recorded.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features import extract_features
    >>> epochs = np.random.default_rng(0).standard_normal((4, 2, 2500))
    >>> frame = extract_features(epochs, sfreq=250, ch_names=["Fp1", "EEG Fp2-LE"])
    >>> frame.shape
    (4, 36)
    >>> frame.columns[[0, 1, 18]].tolist()
    ['Fp1__mean', 'Fp1__variance', 'Fp2__mean']
    """
    made = extract_recording(data, settings, sfreq=sfreq, ch_names=ch_names, unit=unit)
    if not made.metadata:
        return made.X
    levels = pd.DataFrame(made.metadata).rename(columns={"start": "metadata_start"})
    levels.insert(0, "start", made.X.index)
    if CONDITION in {str(name).casefold() for name in data.metadata}:
        levels[CONDITION] = made.conditions
    return made.X.set_index(pd.MultiIndex.from_frame(levels))


@dataclass(eq=False, repr=False)
class FeatureExtractor(TransformerMixin, CheckedEstimator):
    """Turn epochs into features, one row per epoch, as :func:`extract_features` does.

    Nothing is learnt from the data: ``fit`` remembers the channels and checks the parameters.
    A channel that is missing in an epoch gives NaN there, so that an imputer or a method that
    takes NaN comes next.

    Parameters
    ----------
    sfreq : float, optional
        Sampling rate of arrays in Hz; ``mne.Epochs`` know theirs.
    ch_names : sequence of str, optional
        Channel names of arrays; default ``ch000``, ``ch001``, ...
    unit : float, optional
        Volts that one step of an array is; see :func:`extract_features`. The detection, which
        comes with it, compares the epochs of one recording: do not mix recordings then, or set
        ``settings.detect`` to False.
    settings : FeatureSettings, optional
        What to compute and how. ``epoch`` and ``overlap`` have no meaning for epochs that are
        cut already.

    Attributes
    ----------
    n_channels_in_ : int
    feature_names_out_ : ndarray of str
        ``<channel>__<feature>``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from idfsmec.features import FeatureExtractor
    >>> rng = np.random.default_rng(0)
    >>> epochs, y = rng.standard_normal((20, 3, 1000)), np.repeat([0, 1], 10)
    >>> epochs[y == 1] *= 3
    >>> extractor = FeatureExtractor(sfreq=250)
    >>> model = make_pipeline(extractor, StandardScaler(), SimpleImputer(), SVC())
    >>> model.fit(epochs, y).score(epochs, y)
    1.0
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "sfreq": [number(0), None],
        "ch_names": [SequenceOf(str), None],
        "unit": [number(0), None],
        "settings": [FeatureSettings, None],
    }

    sfreq: float | None = None
    _: KW_ONLY
    ch_names: Sequence[str] | None = None
    unit: float | None = None
    settings: FeatureSettings | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    @validate_params
    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the channels.

        Parameters
        ----------
        X : array of shape (n_epochs, n_channels, n_times) or mne.Epochs
        y : ignored
        """
        # One epoch is enough to know the columns, and to fail early on parameters.
        columns = self._frame(X[:1]).columns
        self.feature_names_out_ = columns.to_numpy(dtype=object)
        self.n_channels_in_ = len({split_column(name)[0] for name in columns})
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute the features.

        Parameters
        ----------
        X : array of shape (n_epochs, n_channels, n_times) or mne.Epochs

        Returns
        -------
        ndarray of shape (n_epochs, n_channels * n_outputs)
        """
        check_is_fitted(self)
        frame = self._frame(X)
        if list(frame.columns) != list(self.feature_names_out_):
            raise ValueError(
                f"X has other channels than those this {type(self).__name__} was fitted on: "
                f"{frame.shape[1]} columns beginning with {frame.columns[0]!r} instead of "
                f"{len(self.feature_names_out_)} beginning with {self.feature_names_out_[0]!r}."
            )
        return frame.to_numpy()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the output; ``input_features`` is ignored."""
        check_is_fitted(self)
        return self.feature_names_out_

    def _frame(self, X: Any) -> pd.DataFrame:
        return extract_features(
            X, self.settings, sfreq=self.sfreq, ch_names=self.ch_names, unit=self.unit
        )
