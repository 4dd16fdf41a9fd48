"""Parts of a method that go by name: what fills gaps before, and classifies after a selection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

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
    >>> sorted(FILLERS)
    ['mean']
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
        are 0. A parameter ``channels`` is set, where it has one, to the channel of each column.
    """

    name: str
    transformer: Any

    def build(self, channels: Codes) -> Any:
        """Make a fresh transformer."""
        from sklearn.base import clone

        made = self.transformer() if callable(self.transformer) else clone(self.transformer)
        return made.set_params(channels=channels) if "channels" in made.get_params() else made

    def describe(self) -> dict[str, Any]:
        """What determines its results, as JSON can hold it."""
        made = self.transformer() if callable(self.transformer) else self.transformer
        return {"name": self.name, **describe_estimator(made)}


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
    """

    name: str
    decide: Decide
    takes_gaps: bool = False
    has_cost: bool = True
    slope: float = 2.0

    def describe(self) -> dict[str, Any]:
        """What determines its results, as JSON can hold it."""
        where = getattr(self.decide, "__module__", ""), getattr(self.decide, "__qualname__", "")
        return {
            "name": self.name,
            "decide": ".".join(where),
            "takes_gaps": self.takes_gaps,
            "has_cost": self.has_cost,
            "slope": self.slope,
        }


#: All fillers by name.
FILLERS: Registry[Filler] = Registry("filler")
#: All classifiers by name.
CLASSIFIERS: Registry[Classifier] = Registry("classifier")


def register_filler(
    name: str, transformer: Any | Callable[[], Any], *, overwrite: bool = False
) -> Filler:
    """Add a way of filling gaps; see :class:`Filler` for what it has to do.

    Examples
    --------
    >>> from sklearn.impute import KNNImputer
    >>> register_filler("nearest", KNNImputer(keep_empty_features=True), overwrite=True).name
    'nearest'
    >>> FILLERS.remove("nearest")
    """
    return FILLERS.add(Filler(name, transformer), overwrite=overwrite)


def register_classifier(
    name: str,
    decide: Decide,
    *,
    takes_gaps: bool = False,
    has_cost: bool = True,
    slope: float = 2.0,
    overwrite: bool = False,
) -> Classifier:
    """Add a classifier; see :class:`Classifier` for what it has to do."""
    made = Classifier(name, decide, takes_gaps, has_cost, slope)
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


def _training_mean() -> Any:
    """Zero is the training mean of a standardised feature."""
    from sklearn.impute import SimpleImputer

    return SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)


def _linear_svm(
    train: Floats,
    y: Codes,
    test: Floats,
    *,
    C: float,
    n_classes: int,
    class_weight: str | None,
    random_state: int,
) -> Floats:
    """Linear SVM on filled data; deterministic."""
    from idfsmec.selection.linear_svm import svm_decisions

    return svm_decisions(train, y, test, n_classes=n_classes, C=C, class_weight=class_weight)


def _boosting(
    train: Floats,
    y: Codes,
    test: Floats,
    *,
    C: float,
    n_classes: int,
    class_weight: str | None,
    random_state: int,
) -> Floats:
    """Gradient boosting, which takes NaN as it is.

    For balanced classes the log prior is taken off the log odds. Sample weights would do much
    the same, but binning weighted samples makes a fit ten times as long.
    """
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier

    from idfsmec.selection.linear_svm import by_class

    boosting = HistGradientBoostingClassifier(random_state=random_state).fit(train, y)
    values = by_class(boosting.decision_function(test), boosting.classes_, n_classes)
    if class_weight == "balanced":
        counts = np.bincount(y, minlength=n_classes)
        values = values - np.log(np.where(counts > 0, counts, y.size) / y.size)
    return values


register_filler("mean", _training_mean)
register_classifier("svm", _linear_svm)
register_classifier("boosting", _boosting, takes_gaps=True, has_cost=False, slope=1.0)
