"""Method: filler, selector, classifier, settings to try, and what it can do, under one name."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from idfsmec.errors import InputError
from idfsmec.evaluation.parts import (
    CLASSIFIERS,
    FILLERS,
    Classifier,
    Filler,
    describe_estimator,
    plain,
)

if TYPE_CHECKING:  # names alone are wanted by the Tab key, which does not wait for scikit-learn
    from sklearn.base import BaseEstimator

Family = Literal["proposed", "filter", "wrapper", "embedded", "sanity", "ablation"]
#: What fills gaps unless a method says otherwise; on average it loses least to missing channels.
DEFAULT_FILLER = "completion"


@dataclass(frozen=True)
class Method:
    """All that takes part in a comparison under one name.

    Parameters
    ----------
    name : str
        How results call it. No commas: the command line separates names by them.
    selector : estimator, or a function without arguments that makes one
        With ``fit``, ``ranking_`` and a parameter ``n_features_to_select``. It is cloned for each
        fit; ``random_state`` and ``channels`` are set where it has them. One that takes NaN (its
        tags say so) sees gaps, the others see filled data. One with a method ``rank_grid`` ranks
        all settings and inner folds at once; see :func:`idfsmec.selection.rank_grid`.
    family : {"filter", "wrapper", "embedded", "proposed", "sanity", "ablation"}
        Kind of method, for tables and colours. A ``"proposed"`` one also ranks whole tables.
    label : str
        A few words for tables and figures; by default the name.
    filler : str or Filler
        What stands in for missing values, by its name in ``FILLERS``, for the classifier and for
        a selector that takes none.
    classifier : str or Classifier
        What is scored on the selected features, by its name in ``CLASSIFIERS``.
    settings : sequence of dict, or mapping of parameter to values
        Parameters of the selector to try; tuning picks one of them. A mapping stands for all
        combinations of its values. The one nearest to the selector's own parameters is the
        default, which tuning leaves only for a clear gain.
    depends_on_k : bool
        Whether the features are chosen together, for one number of them: the first five of ten
        are then not the best five, and each number needs a fit.
    all_features : bool
        Whether all features are used, so that there is no k.
    costs : sequence of float, optional
        Values of the classifier's C to try in place of the protocol's.
    inner : dict, optional
        Parameters of the selector on inner folds, which only choose a number of features, a cost
        and a setting: where a rougher ranking does for that, such as one by fewer trees.
    needs : str, optional
        A module without which the method cannot run.
    slow : bool
        Whether one fold takes minutes on tables of some size. At each missing rate a run does such
        methods last.
    takes : tuple of two floats, optional
        Seconds for a fold of a default comparison on 1650 samples of 342 features, and to which
        power of the number of values they grow. A run guesses by it how long it will take.

    Examples
    --------
    >>> from idfsmec.selection import IDFSMEC
    >>> mine = Method("mine", IDFSMEC(), settings={"lam": [0.1, 10.0]})
    >>> mine.takes_gaps, mine.settings
    (True, ({'lam': 0.1}, {'lam': 10.0}))
    """

    name: str
    selector: BaseEstimator | Callable[[], BaseEstimator]
    family: Family = "filter"
    label: str = ""
    filler: str | Filler = DEFAULT_FILLER
    classifier: str | Classifier = "svm"
    settings: tuple[dict[str, Any], ...] = ({},)
    depends_on_k: bool = False
    all_features: bool = False
    costs: tuple[float, ...] | None = None
    inner: dict[str, Any] = field(default_factory=dict)
    needs: str | None = None
    slow: bool = False
    takes: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if "," in self.name or not self.name.strip():
            raise InputError(
                f"a method needs a name without commas, got {self.name!r}: lists of methods "
                "separate names by them"
            )
        if self.family not in get_args(Family):
            raise InputError(
                f"family is {self.family!r}; choose from {', '.join(get_args(Family))}"
            )
        tried: Any = self.settings
        tried = settings_grid(**tried) if isinstance(tried, Mapping) else map(dict, tried)
        object.__setattr__(self, "settings", tuple(tried) or ({},))
        object.__setattr__(self, "label", self.label or self.name)
        if self.costs is not None:
            object.__setattr__(self, "costs", tuple(map(float, self.costs)))
        if not callable(self.selector):
            self._check_parameters()

    def _check_parameters(self) -> None:
        known = self.build().get_params()
        tried = {parameter for setting in (*self.settings, self.inner) for parameter in setting}
        for parameter in ("n_features_to_select", *sorted(tried)):
            if parameter not in known:
                raise InputError(
                    f"{type(self.selector).__name__} has no parameter {parameter!r}, which the "
                    "evaluation would set"
                )

    @property
    def available(self) -> bool:
        """Whether what it needs is installed."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None

    @property
    def takes_gaps(self) -> bool:
        """Whether the selector takes NaN; the others get filled data."""
        from sklearn.utils import get_tags

        return bool(get_tags(self.build()).input_tags.allow_nan)

    @property
    def default_setting(self) -> int:
        """Which of the settings the selector has by default, or comes nearest to that."""
        from idfsmec.selection.tuning import nearest_setting

        return nearest_setting(self.settings, self.build().get_params())

    def build(
        self, *, random_state: int | None = None, channels: Any = None, **parameters: Any
    ) -> BaseEstimator:
        """Make a fresh selector.

        Parameters
        ----------
        random_state, channels : optional
            Given to selectors that have such a parameter, ignored by the others.
        **parameters
            Set on the selector, such as ``n_features_to_select``.

        Examples
        --------
        >>> from idfsmec.evaluation import METHODS
        >>> METHODS["CD-LSR"].build(n_features_to_select=5, random_state=1)
        CDLSR(n_features_to_select=5, random_state=1)
        """
        from sklearn.base import clone

        fresh = self.selector() if callable(self.selector) else clone(self.selector)
        known = fresh.get_params()
        for name, value in (("random_state", random_state), ("channels", channels)):
            if value is not None and name in known:
                parameters[name] = value
        return fresh.set_params(**parameters)

    def ks(self, wanted: Sequence[int], n_features: int) -> list[int]:
        """Say which numbers of features are scored."""
        if self.all_features:
            return [n_features]
        return sorted(k for k in wanted if k <= n_features) or [n_features]

    @property
    def filling(self) -> Filler:
        """The filler itself, also where it is given by name."""
        return FILLERS.find(self.filler)

    @property
    def classifying(self) -> Classifier:
        """The classifier itself, also where it is given by name."""
        return CLASSIFIERS.find(self.classifier)

    def resolve(self) -> Method:
        """Put objects in the place of names: what a worker that knows no registry can run."""
        return replace(
            self, selector=self.build(), filler=self.filling, classifier=self.classifying
        )

    def describe(self) -> dict[str, Any]:
        """What determines the method's results, as JSON can hold it."""
        return {
            "name": self.name,
            "selector": describe_estimator(self.build()),
            "filler": self.filling.describe(),
            "classifier": self.classifying.describe(),
            "settings": [{key: plain(v) for key, v in one.items()} for one in self.settings],
            "depends_on_k": self.depends_on_k,
            "all_features": self.all_features,
            "costs": self.costs,
            **({"inner": {key: plain(v) for key, v in self.inner.items()}} if self.inner else {}),
        }


def settings_grid(**values: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """Combine values of several parameters.

    Examples
    --------
    >>> settings_grid(lam=[0.1, 1.0], gamma=[2.0])
    ({'lam': 0.1, 'gamma': 2.0}, {'lam': 1.0, 'gamma': 2.0})
    """
    return tuple(
        dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())
    )
