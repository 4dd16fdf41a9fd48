"""Registry of features: named functions of the signal with named outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.table.columns import SEPARATOR

if TYPE_CHECKING:
    from idfsmec.features.families import EpochSignal
    from idfsmec.features.settings import FeatureSettings

FeatureFunction: TypeAlias = "Callable[[EpochSignal], NDArray[np.float64]]"
OutputNames: TypeAlias = "Sequence[str] | Callable[[FeatureSettings], Sequence[str]]"

DEFAULT_FEATURES = (
    *("mean", "variance", "nsi", "hoc", "c0", "spectral_entropy", "shannon_entropy"),
    *("de", "ap", "ap_beta_theta_ratio"),
)
"""The ten features that the paper names: 18 columns with five bands."""

_LOG_FEATURES = tuple(
    f"log_{name}" if name in ("variance", "ap", "ap_beta_theta_ratio") else name
    for name in DEFAULT_FEATURES
)

FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "paper": DEFAULT_FEATURES,
    "log": _LOG_FEATURES,
    "extended": (
        *_LOG_FEATURES,
        *("hjorth", "lempel_ziv", "permutation_entropy", "aperiodic"),
    ),
}
"""Sets of features by name: the paper's, the same with logarithms of powers and variance, and with
those of the libraries of the extra ``spectra`` as well."""


@dataclass(frozen=True)
class Feature:
    """A named function of an :class:`EpochSignal`, and the names of what it returns.

    Parameters
    ----------
    name : str
        How the feature is asked for.
    function : callable
        Takes an :class:`EpochSignal` of shape (n_epochs, n_channels, n_times), some epochs of the
        recording with all of its channels (``signal.missing`` says which are missing), and
        returns an array of shape (n_epochs, n_channels) for one output or (n_epochs, n_channels,
        n_outputs) for several. Every epoch counts for itself.
    outputs : sequence of str, or callable, optional
        Column names, or a function from :class:`FeatureSettings` to column names for features
        whose outputs depend on the bands. Default: one output, called as the feature.
    of_pairs : bool
        Whether tables get right minus left of frontal pairs of electrodes, as blocks of their own
        (``F4-F3__<output>``), and not the channels' values.
    """

    name: str
    function: FeatureFunction = field(repr=False)
    outputs: OutputNames | None = field(default=None, repr=False)
    of_pairs: bool = False

    def columns(self, settings: FeatureSettings) -> list[str]:
        """Names of the outputs under these settings."""
        if self.outputs is None:
            return [self.name]
        names = self.outputs(settings) if callable(self.outputs) else self.outputs
        return list(names)

    def compute(self, signal: EpochSignal) -> NDArray[np.float64]:
        """Evaluate the function; always (..., n_outputs)."""
        n_outputs = len(self.columns(signal.settings))
        values = np.asarray(self.function(signal), dtype=np.float64)
        shape = (*signal.data.shape[:-1], n_outputs)
        if n_outputs == 1 and values.shape == shape[:-1]:
            values = values[..., np.newaxis]
        if values.shape != shape:
            raise InputError(
                f"Feature {self.name!r} returned shape {values.shape} where {shape} was due: "
                "one value per epoch, channel and named output."
            )
        return values


class FeatureRegistry(dict[str, Feature]):
    """Features by name, in the order of their registration.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec.features import FeatureRegistry
    >>> registry = FeatureRegistry()
    >>> @registry.register("line_length")
    ... def line_length(signal):
    ...     return np.abs(np.diff(signal.data)).mean(axis=-1)
    >>> list(registry)
    ['line_length']
    """

    def __init__(self) -> None:
        self._families: dict[str, tuple[Callable[[str], Feature], Callable[[str], str]]] = {}

    def __missing__(self, name: str) -> Feature:
        family, colon, rest = name.partition(":")
        if colon and family in self._families:
            return self._families[family][0](rest)
        raise InputError(f"There is no feature {name!r}; there are: {', '.join(self)}.")

    def register(
        self,
        name: str,
        *,
        outputs: OutputNames | None = None,
        of_pairs: bool = False,
        overwrite: bool = False,
    ) -> Callable[[FeatureFunction], FeatureFunction]:
        """Decorate a function so that it can be asked for by name.

        Parameters
        ----------
        name : str
            The feature's name.
        outputs : sequence of str or callable, optional
        of_pairs : bool
            See :class:`Feature`.
        overwrite : bool
            Replace a feature of that name (running a notebook cell twice).
        """
        check_name(name, "feature")
        if name in self and not overwrite:
            raise InputError(
                f"Feature {name!r} exists already; pass overwrite=True to replace it."
            )

        def add(function: FeatureFunction) -> FeatureFunction:
            self[name] = Feature(name, function, outputs, of_pairs)
            return function

        return add

    def register_family(
        self, family: str, make: Callable[[str], Feature], of_column: Callable[[str], str]
    ) -> None:
        """Let features be asked for as ``<family>:<name>`` that are made when they are.

        ``make`` turns the name into a feature, whose columns begin with ``<family>:``;
        ``of_column`` turns a column without ``<family>:`` into the name.
        """
        check_name(family, "family of features")
        self._families[family] = make, of_column

    def giving(self, columns: Iterable[str], settings: FeatureSettings) -> list[str]:
        """Name the features that give these columns; columns that none gives are left out."""
        known = {
            column: name for name, feature in self.items() for column in feature.columns(settings)
        }
        names: dict[str, None] = {}
        for column in columns:
            family, _, rest = column.partition(":")
            if column in known:
                names[known[column]] = None
            elif rest and family in self._families:
                names[f"{family}:{self._families[family][1](rest)}"] = None
        return list(names)

    def remove(self, name: str) -> None:
        """Take a feature out."""
        del self[self[name].name]

    def resolve(self, features: Iterable[str | Feature]) -> tuple[Feature, ...]:
        """Turn names, or the name of one of :data:`FEATURE_SETS`, into features."""
        if isinstance(features, str):
            features = FEATURE_SETS.get(features, [features])
        return tuple(f if isinstance(f, Feature) else self[f] for f in features)


FEATURES = FeatureRegistry()
"""The package's features, and those that ``register_feature`` adds."""

register_feature = FEATURES.register


def check_name(name: str, kind: str) -> None:
    """Refuse names that would make ``<channel>__<feature>`` ambiguous or unreadable."""
    if not isinstance(name, str) or not name or SEPARATOR in name or name != name.strip():
        raise InputError(
            f"{name!r} cannot name a {kind}: use a non-empty text without a double underscore, "
            "which separates channel and feature in a table's columns."
        )
    if name.startswith("_") or name.endswith("_"):
        raise InputError(f"{name!r} cannot name a {kind}: it must not start or end with '_'.")
