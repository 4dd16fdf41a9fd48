import enum
import functools
import importlib
import os
import re
import subprocess
import sys
import textwrap
import threading
import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectKBest, f_classif, mutual_info_classif
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from idfsmec import _fingerprint as module
from idfsmec._fingerprint import Indescribable, describe, fingerprint, fingerprint_or_warn

POWER = 2


def moment(x, k=2, *, centre=True):
    return (x - centre * x.mean()) ** k


def by_global(x):
    return [np.mean(value**POWER) for value in x]


def by_other_function(x):
    return by_global(x) + by_itself(3)


def by_itself(n):
    return 1 if n < 2 else n * by_itself(n - 1)


def closure(k):
    def power(x):
        return x**k

    return power


class Power:
    factor = 2

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.factor * x**self.k

    @functools.cached_property
    def doubled(self):
        return 2 * self.k


@dataclass(frozen=True)
class Options:
    k: int = 2
    names: list = field(default_factory=list)


class Selector(BaseEstimator):
    def __init__(self, power=2, score=None):
        self.power = power
        self.score = score

    def fit(self, X, y=None):
        self.ranking_ = np.arange(X.shape[1])
        return self


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


Pair = namedtuple("Pair", "first second")


def user_module(folder, name, **sources):
    """Import a module of the user's own, and what it imports, from a folder."""
    for each, source in sources.items():
        (folder / f"{each}.py").write_text(textwrap.dedent(source))
    importlib.invalidate_caches()
    for each in sources:
        sys.modules.pop(each, None)
    return importlib.import_module(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


# --- what changes a fingerprint -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (partial(moment, k=2), partial(moment, k=4)),
        (partial(moment, 1), partial(moment, 2)),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x.mean(), lambda x: x.std()),
        (lambda x, k=1: x * k, lambda x, k=2: x * k),
        (lambda x, *, k=1: x * k, lambda x, *, k=2: x * k),
        (lambda x: [v + 1 for v in x], lambda x: [v + 2 for v in x]),
        (lambda a, b: a - b, lambda b, a: a - b),
        (closure(2), closure(3)),
        (Power(2), Power(3)),
        (Power(2).__call__, Power(3).__call__),
        (Options(), Options(k=3)),
        (Options(), Options(names=["a"])),
        (Side.LEFT, Side.RIGHT),
        (Pair(1, 2), Pair(1, 3)),
        (Selector(2), Selector(3)),
        (Selector(score=f_classif), Selector(score=mutual_info_classif)),
        (SelectKBest(f_classif), SelectKBest(mutual_info_classif)),
        (FunctionTransformer(np.log), FunctionTransformer(np.sqrt)),
        (FunctionTransformer(lambda x: x), FunctionTransformer(lambda x: -x)),
        (StratifiedKFold(3), StratifiedKFold(4)),
        (make_scorer(roc_auc_score), make_scorer(roc_auc_score, greater_is_better=False)),
        (np.arange(3), np.arange(3.0)),
        (np.arange(6), np.arange(6).reshape(2, 3)),
        (np.array(["a", None]), np.array(["b", None])),
        (np.array([(1, 2)], dtype="i,i"), np.array([(1, 3)], dtype="i,i")),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        (np.random.RandomState(0), np.random.RandomState(1)),
        (np.sin, np.cos),
        (np.float32(0.5), 0.5),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),  # the order of bands is the order of columns
        (OrderedDict(a=1), OrderedDict(a=2)),
        (1, True),
        (1, 1.0),
        (1, "1"),
        (0.0, -0.0),
        (float("nan"), "nan"),
        (b"a", b"b"),
        (1j, 2j),
        (range(3), range(4)),
        (None, ...),
    ],
)
def test_what_computes_otherwise_has_another_fingerprint(first, second):
    assert fingerprint(first) != fingerprint(second)
    assert fingerprint(first) == fingerprint(first)


@pytest.mark.parametrize("function", [by_global, by_other_function, lambda x: by_global(x)])
def test_a_changed_global_changes_the_functions_that_name_it(monkeypatch, function):
    before = fingerprint(function)
    monkeypatch.setattr(sys.modules[__name__], "POWER", 4)
    assert fingerprint(function) != before
    monkeypatch.setattr(sys.modules[__name__], "POWER", 2)
    assert fingerprint(function) == before


def test_a_changed_attribute_of_a_class_changes_its_objects_and_estimators(monkeypatch):
    before = fingerprint(Power(2)), fingerprint(FunctionTransformer(Power(2)))
    monkeypatch.setattr(Power, "factor", 3)
    assert fingerprint(Power(2)) != before[0]
    assert fingerprint(FunctionTransformer(Power(2))) != before[1]


def test_a_changed_method_changes_an_estimator(monkeypatch):
    before = fingerprint(make_pipeline(Selector()))
    monkeypatch.setattr(Selector, "fit", lambda self, X, y=None: self)
    assert fingerprint(make_pipeline(Selector())) != before


def test_an_attribute_of_a_function_counts():
    first, second = closure(2), closure(2)
    assert fingerprint(first) == fingerprint(second)
    second.order = 3
    assert fingerprint(first) != fingerprint(second)


def test_a_function_around_another_is_described_with_it():
    def doubled(function):
        @functools.wraps(function)
        def wrapper(x):
            return 2 * function(x)

        return wrapper

    around = [doubled(closure(k)) for k in (2, 3)]
    assert fingerprint(around[0]) != fingerprint(around[1])
    cached = [functools.lru_cache(closure(k)) for k in (2, 3)]
    assert fingerprint(cached[0]) != fingerprint(cached[1])
    vectorised = [np.vectorize(closure(k)) for k in (2, 3)]
    assert fingerprint(vectorised[0]) != fingerprint(vectorised[1])


HELPER = "K = {k}\n\n\ndef power(x):\n    return x**K\n\n\ndef other(x):\n    return x\n"


@pytest.mark.parametrize(
    "source",
    [
        "import helper\n\n\ndef f(x):\n    return helper.power(x)\n",
        "import helper as h\n\n\ndef f(x):\n    return [h.power(v) for v in x]\n",
        "from helper import power\n\n\ndef f(x):\n    return power(x)\n",
        "def f(x):\n    import helper\n\n    return helper.power(x)\n",
        "def f(x):\n    from helper import power\n\n    return power(x)\n",
        "class F:\n    def __call__(self, x):\n        from helper import power\n\n"
        "        return power(x)\n\n\nf = F()\n",
    ],
)
def test_functions_of_other_modules_of_the_user_count(folder, source):
    keys = []
    for k in (2, 4, 2):
        own = user_module(folder, "own", helper=HELPER.format(k=k), own=source)
        keys.append(fingerprint(own.f))
    assert keys[0] == keys[2] != keys[1]


def test_what_code_does_not_name_does_not_count(folder):
    source = "import helper\nOTHER = {k}\n\n\ndef f(x):\n    return helper.other(x)\n"
    keys = {
        fingerprint(
            user_module(folder, "own", helper=HELPER.format(k=k), own=source.format(k=k)).f
        )
        for k in (2, 4)
    }
    assert len(keys) == 1


def test_submodules_are_followed_however_they_are_imported(folder):
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").write_text("")
    bodies = (
        "from mine.deep import power; return power(x)",
        "from mine import deep; return deep.power(x)",
        "import mine.deep; return mine.deep.power(x)",
        "from . import deep; return deep.power(x)",
        "from .deep import power; return power(x)",
    )
    lines = [f"def f{i}(x):\n    {body}\n" for i, body in enumerate(bodies)]
    (folder / "mine" / "caller.py").write_text("\n\n".join(lines))
    keys = []
    for k in (2, 4):
        (folder / "mine" / "deep.py").write_text(HELPER.format(k=k))
        for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        caller = importlib.import_module("mine.caller")
        keys.append([fingerprint(getattr(caller, f"f{i}")) for i in range(len(bodies))])
    assert all(first != second for first, second in zip(*keys, strict=True))
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]


def test_a_module_that_is_passed_on_cannot_be_described(folder):
    source = "import helper\n\n\ndef f(x):\n    return getattr(helper, 'pow' + 'er')(x)\n"
    own = user_module(folder, "own", helper=HELPER.format(k=2), own=source)
    with pytest.raises(Indescribable, match="f: the module helper is used as a whole"):
        fingerprint(own.f)


def test_a_module_that_is_not_installed_is_left_to_the_code():
    def f(x):
        try:
            import there_is_no_such_module  # noqa: F401
        except ImportError:
            return x

    assert re.fullmatch("[0-9a-f]{64}", fingerprint(f))


# --- what does not change it --------------------------------------------------------------------


PIPELINE = make_pipeline(SimpleImputer(), SelectKBest(f_classif), LogisticRegression())


@pytest.mark.parametrize(
    "obj",
    [
        PIPELINE,
        GridSearchCV(PIPELINE, {"logisticregression__C": np.logspace(-2, 2, 5)}),
        RandomizedSearchCV(LogisticRegression(), {"C": loguniform(1e-3, 1)}),
        FunctionTransformer(lambda x: [v for v in x], inverse_func=expit),  # noqa: C416
        Selector(score=partial(moment, k=3)),
    ],
)
def test_estimators_have_the_fingerprint_of_their_clones(obj):
    assert fingerprint(clone(obj)) == fingerprint(obj)


def test_fitting_does_not_change_the_fingerprint():
    X, y = np.random.default_rng(0).normal(size=(20, 12)), np.repeat([0, 1], 10)
    before = fingerprint(PIPELINE)
    fitted = clone(PIPELINE).fit(X, y)
    assert fingerprint(fitted) == before


def test_what_a_frozen_estimator_has_learned_counts():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.repeat([0, 1], 10)
    frozen = [FrozenEstimator(LogisticRegression().fit(sign * X, y)) for sign in (1, -1)]
    assert fingerprint(frozen[0]) != fingerprint(frozen[1])
    assert fingerprint(clone(frozen[0])) == fingerprint(frozen[0])


def test_use_does_not_change_the_fingerprint():
    power, before = Power(2), fingerprint(Power(2))
    assert power.doubled == 4
    power.__reduce_ex__(4)  # leaves __slotnames__ in the class
    assert fingerprint(power) == before


def test_equal_code_in_another_place_has_the_same_fingerprint():
    first, second = (lambda x: [v + 1 for v in x]), (lambda x: [v + 1 for v in x])
    assert first.__code__ != second.__code__ or first is not second
    assert fingerprint(first) == fingerprint(second)


def test_objects_that_contain_themselves_can_be_described():
    endless = [1]
    endless.append(endless)
    assert describe(endless) == [1, {"outer": 1}]
    assert fingerprint(by_itself) != fingerprint(by_global)


def test_nothing_of_a_description_is_an_address():
    def nested(x):
        def inner(values):
            return [v for v in values]  # noqa: C416

        return inner(x)

    objects = [nested, closure(2), PIPELINE, Power(2), Selector(), Options(), Side.LEFT, np.sum]
    text = str([describe(obj) for obj in objects])
    assert " at 0x" not in text
    assert all(str(id(obj)) not in text for obj in (*objects, nested.__code__))


def test_a_library_is_its_name_and_version(monkeypatch):
    import sklearn

    described = describe(SelectKBest(f_classif))
    name = "sklearn.feature_selection._univariate_selection"
    assert described["class"] == {"name": f"{name}.SelectKBest", "version": sklearn.__version__}
    assert described["params"]["score_func"]["name"] == f"{name}.f_classif"
    before = fingerprint(lambda x: np.mean(x))
    versions = dict(describe(lambda x: np.mean(x))["definitions"][0]["names"])
    assert versions["np"] == {"name": "numpy", "version": np.__version__}
    monkeypatch.setattr(module, "_version_of_package", lambda package: "99")
    assert fingerprint(np.mean) != before


def test_another_process_and_another_hash_seed_give_the_same_fingerprint(tmp_path):
    (tmp_path / "own.py").write_text(
        textwrap.dedent(
            """
            import functools
            from dataclasses import dataclass, field
            import numpy as np
            from sklearn.base import BaseEstimator
            from sklearn.feature_selection import SelectorMixin, SelectKBest, f_classif
            from sklearn.impute import SimpleImputer
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline

            NAMES = {"delta", "theta", "alpha", "beta", "gamma"}


            class Mine(SelectorMixin, BaseEstimator):
                def __init__(self, names=frozenset(NAMES), score=None):
                    self.names, self.score = names, score

                def fit(self, X, y):
                    self.a_, self.b_, self.c_ = X, y, super()
                    return self

                def _get_support_mask(self):
                    return [name in {"a", "b", "c", "d"} for name in NAMES]


            @dataclass
            class Options:
                names: set = field(default_factory=lambda: set(NAMES))


            @functools.lru_cache
            def cached(x):
                return {name: [x for _ in NAMES] for name in sorted(NAMES)}


            def adding(k):
                return lambda x: cached(x) + k


            objects = [
                make_pipeline(SimpleImputer(), SelectKBest(f_classif), LogisticRegression()),
                make_pipeline(Mine(score=adding(3)), LogisticRegression()),
                functools.partial(adding(2), x={"b", "a"}),
                Options(),
                np.arange(5),
            ]
            """
        )
    )
    command = (
        "import own; from idfsmec._fingerprint import fingerprint\n"
        "print([fingerprint(obj) for obj in own.objects])"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(module.__file__).parents[1])])
    told = {
        subprocess.run(
            [sys.executable, "-c", command],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


@pytest.mark.slow
def test_compiled_functions_are_described_by_their_code_and_options(tmp_path):
    pytest.importorskip("numba")
    command = textwrap.dedent(
        """
        import numba
        from idfsmec._fingerprint import fingerprint
        make = lambda k, **options: numba.njit(**options)(lambda x: x + k)
        key = fingerprint(make(1))
        assert key != fingerprint(make(2))
        assert key != fingerprint(make(1, fastmath=True))
        print(key)
        """
    )
    env = os.environ | {"PYTHONPATH": str(Path(module.__file__).parents[1])}
    env.pop("NUMBA_DISABLE_JIT", None)
    run = partial(subprocess.run, env=env, capture_output=True, text=True, check=True)
    first, second = (run([sys.executable, "-c", command]).stdout for _ in range(2))
    assert first == second != ""


# --- what cannot be described -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ((i for i in ()), "generator"),
        (threading.Lock(), "lock"),
        (Power(threading.Lock()), "^k: lock object"),
        (closure(threading.Lock()), "power: k: lock object"),
        (FunctionTransformer(kw_args={"lock": threading.Lock()}), "^kw_args: lock"),
        (np.frompyfunc(lambda x: x, 1, 1), "belongs to no library"),
    ],
)
def test_what_is_open_or_running_cannot_be_described(obj, message):
    with pytest.raises(Indescribable, match=message):
        describe(obj)


def test_an_endless_object_cannot_be_described():
    class Endless:
        def __reduce_ex__(self, protocol):
            return (Endless, (Endless(),))

    with pytest.raises(Indescribable, match="nested too deeply"):
        describe(Endless())


def test_one_warning_names_what_is_not_cached():
    lock = threading.Lock()
    with pytest.warns(UserWarning, match=r"The method 'mine' cannot .* \(k: lock .* not cached"):
        assert fingerprint_or_warn(Power(lock), "The method 'mine'") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fingerprint_or_warn(Power(lock), "The method 'mine'") is None
        assert fingerprint_or_warn(Power(2), "The method 'mine'") == fingerprint(Power(2))
