"""Parts of a method that go by name: what fills gaps before, and classifies after a selection."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from idfsmec.errors import InputError

if TYPE_CHECKING:  # the Tab key wants names only
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]


class Named(Protocol):
    """Anything that has a name."""

    @property
    def name(self) -> str:
        """Its name."""


Entry = TypeVar("Entry", bound=Named)


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name: a mapping that is read, and one way to add to it.

    Examples
    --------
    >>> list(FILLERS)
    ['mean', 'neighbours', 'completion', 'scalp', 'indicators']
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._entries: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Entry, *, overwrite: bool = False) -> Entry:
        """Add an entry; one of the same name is replaced only if that is said."""
        if entry.name in self._entries and not overwrite:
            raise InputError(
                f"there is a {self._kind} {entry.name!r} already; replace it with overwrite=True",
                argument="overwrite",
            )
        self._entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Forget an entry."""
        del self._entries[name]

    def find(self, wanted: str | Entry) -> Entry:
        """Look up a name; what is an entry already is given back."""
        if not isinstance(wanted, str):
            return wanted
        if wanted not in self._entries:
            raise InputError(
                f"there is no {self._kind} {wanted!r}; choose from {', '.join(self._entries)}"
            )
        return self._entries[wanted]


@dataclass(frozen=True)
class Filler:
    """What stands in for missing values.

    Parameters
    ----------
    name : str
        How methods call it.
    transformer : transformer, or a function without arguments that makes one
        Takes NaN and gives none, with as many columns. It is fitted on training samples alone, and
        sees features that have been standardised by their observed training values: their means
        are 0. Parameters ``channels`` and ``features`` are set, where it has them, to the channel
        and the feature of each column, and ``positions`` to the directions of the channels.
    marks_gaps : bool
        Whether the classifier also sees, for each channel it has a feature of, whether that is
        missing.
    """

    name: str
    transformer: Any
    marks_gaps: bool = False

    def build(self, channels: Any = None, features: Any = None, positions: Any = None) -> Any:
        """Make a fresh transformer."""
        made = self._fresh()
        given = {"channels": channels, "features": features, "positions": positions}
        known = made.get_params()
        wanted = {key: v for key, v in given.items() if key in known and v is not None}
        return made.set_params(**wanted)

    @property
    def needs_positions(self) -> bool:
        """Whether it asks where on the head channels are."""
        return "positions" in self._fresh().get_params()

    def describe(self) -> dict[str, Any]:
        """What determines its results, as JSON can hold it."""
        marks = {"marks_gaps": True} if self.marks_gaps else {}
        return {"name": self.name, **marks, **describe_estimator(self._fresh())}

    def _fresh(self) -> Any:
        from sklearn.base import clone

        return self.transformer() if callable(self.transformer) else clone(self.transformer)


class Decide(Protocol):
    """How a classifier is called: trained and asked at once."""

    def __call__(
        self,
        train: Floats,
        y: Codes,
        test: Floats,
        *,
        C: float,
        n_classes: int,
        class_weight: str | None,
        random_state: int,
        **asked: Any,
    ) -> Floats:
        """Give decision values of shape (n_test, n_classes); the highest one is predicted."""


@dataclass(frozen=True)
class Classifier:
    """What is trained and scored on selected features.

    Parameters
    ----------
    name : str
        How methods call it.
    decide : callable
        ``decide(train, y, test, *, C, n_classes, class_weight, random_state)`` gives decision
        values of shape (n_test, n_classes). Classes are 0 ... n_classes - 1; one that training
        lacks gets the lowest value.
    takes_gaps : bool
        Whether it takes NaN as it is; otherwise it gets filled data.
    has_cost : bool
        Whether it has a C to tune; otherwise C is NaN.
    slope : float
        What its decisions are multiplied by to be log odds, roughly, for the log loss that tuning
        minimises: 2 for a linear SVM, 1 for what gives log odds itself.
    takes : sequence of str
        What more it is given by name: ``channels``, the channel of each column, and ``groups``,
        the subject of each training sample.
    model : callable, optional
        ``model(C=..., class_weight=..., random_state=..., channels=...)`` gives a classifier of
        scikit-learn that decides in the same way, so that it can be kept
        (:class:`TunedMethod`); it is fitted with ``groups`` if it ``takes`` them.
    many : callable, optional
        ``many(train, y, test, sets, *, n_classes, class_weight, random_state)`` gives a list with
        the decisions of ``decide`` for each set (places of columns in the order of their ranks,
        C), where sets share work.
    """

    name: str
    decide: Decide
    takes_gaps: bool = False
    has_cost: bool = True
    slope: float = 2.0
    takes: tuple[Literal["channels", "groups"], ...] = ()
    model: Callable[..., Any] | None = None
    many: Callable[..., Any] | None = None

    def describe(self) -> dict[str, Any]:
        """What determines its results, as JSON can hold it."""
        own_name = getattr(self.decide, "name", "")
        where = (
            getattr(self.decide, "__module__", ""),
            getattr(self.decide, "__qualname__", own_name),
        )
        return {
            "name": self.name,
            "decide": ".".join(where),
            "takes_gaps": self.takes_gaps,
            "has_cost": self.has_cost,
            "slope": self.slope,
            "takes": list(self.takes),
        }


#: All fillers by name.
FILLERS: Registry[Filler] = Registry("filler")
#: All classifiers by name.
CLASSIFIERS: Registry[Classifier] = Registry("classifier")


def register_filler(
    name: str,
    transformer: Any | Callable[[], Any],
    *,
    marks_gaps: bool = False,
    overwrite: bool = False,
) -> Filler:
    """Add a way of filling gaps; see :class:`Filler` for what it has to do.

    Examples
    --------
    >>> from sklearn.impute import KNNImputer
    >>> register_filler("nearest", KNNImputer(keep_empty_features=True), overwrite=True).name
    'nearest'
    >>> FILLERS.remove("nearest")
    """
    return FILLERS.add(Filler(name, transformer, marks_gaps), overwrite=overwrite)


def register_classifier(
    name: str,
    decide: Decide,
    *,
    takes_gaps: bool = False,
    has_cost: bool = True,
    slope: float = 2.0,
    takes: tuple[Literal["channels", "groups"], ...] = (),
    model: Callable[..., Any] | None = None,
    many: Callable[..., Any] | None = None,
    overwrite: bool = False,
) -> Classifier:
    """Add a classifier; see :class:`Classifier` for what it has to do."""
    made = Classifier(name, decide, takes_gaps, has_cost, slope, takes, model, many)
    return CLASSIFIERS.add(made, overwrite=overwrite)


def describe_estimator(estimator: Any) -> dict[str, Any]:
    """Class and parameters of an estimator, as JSON can hold them."""
    kind = type(estimator)
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "params": {key: plain(value) for key, value in estimator.get_params().items()},
    }


def plain(value: Any) -> Any:
    """Give a value as JSON can hold it, so that equal parameters give equal text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
    return value


def lazily(path: str, **parameters: Any) -> Callable[[], Any]:
    """Name an estimator that is imported and made when it is asked for.

    Examples
    --------
    >>> lazily("idfsmec.selection.MRMR", n_bins=10)()
    MRMR(n_bins=10)
    """
    return partial(_make, path, parameters)


def _make(path: str, parameters: Mapping[str, Any]) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)(**parameters)


@dataclass(frozen=True)
class _Lazily:
    """A function of :mod:`idfsmec.evaluation.classifiers`, imported when it is called."""

    name: str

    def __call__(self, *data: Any, **options: Any) -> Any:
        module = importlib.import_module("idfsmec.evaluation.classifiers")
        return getattr(module, self.name)(*data, **options)


register_filler("mean", lazily("idfsmec.evaluation.fillers.training_mean"))
register_filler("neighbours", lazily("idfsmec.evaluation.fillers.neighbours"))
register_filler("completion", lazily("idfsmec.prediction.ChannelImputer"))
register_filler("scalp", lazily("idfsmec.prediction.imputer.ScalpSplines"))
register_filler("indicators", lazily("idfsmec.evaluation.fillers.training_mean"), marks_gaps=True)


def _add_classifier(name: str, decide: str, **options: Any) -> None:
    model = _Lazily(f"make_{decide}")
    register_classifier(name, _Lazily(decide), model=model, **options)


_add_classifier("svm", "svm", many=_Lazily("many_svms"))
_add_classifier("ridge", "ridge")
_add_classifier(
    "idfsmec",
    "idfsmec",
    takes_gaps=True,
    has_cost=False,
    slope=1.0,
    takes=("channels", "groups"),
)
_add_classifier("boosting", "boosting", takes_gaps=True, has_cost=False, slope=1.0)
