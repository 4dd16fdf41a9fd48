"""The one description of an object that keys are made of: by what it computes, as JSON holds it.

Keys of caches and tasks are hashes of this description. It is the same in every process and holds
no memory address, so that equal keys mean equal results, and the same work has the same key at
every start:

- A function is its code, with the code inside it, defaults, closure, and the values of the global
  names that the code uses; functions and classes among those are described in the same way.
- An estimator is its class and its parameters. Any other object is its class and what
  ``__reduce_ex__`` says it is made of.
- A function or class of a library is its name and the version of its distribution.

Not seen is what code reaches by other ways than names: ``getattr`` with a text, ``eval``, files.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import math
import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from pathlib import Path
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._version import __version__

_GLOBAL_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
# Attributes of a class that say where it was written or hold no code.
_NOT_COMPUTED = frozenset(
    {
        *("__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__"),
        *("__conditional_annotations__", "__dataclass_fields__", "__dataclass_params__"),
        *("__dict__", "__doc__", "__firstlineno__", "__module__", "__orig_bases__"),
        *("__parameters__", "__qualname__", "__slotnames__", "__static_attributes__"),
        *("__type_params__", "__weakref__", "_abc_impl"),
    }
)
# Distributions of other names than their package; asking all that are installed takes long.
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
_warned: set[str] = set()


class Indescribable(TypeError):  # noqa: N818 - it says what the object is
    """What an object computes cannot be described; the message names the part of it."""


def describe(obj: Any) -> Any:
    """Describe an object by what it computes, in lists, dicts, texts and numbers.

    Parameters
    ----------
    obj : object
        A function, estimator, class, dataclass, array, container or value.

    Returns
    -------
    JSON-able
        Objects with the same description compute the same.

    Raises
    ------
    Indescribable
        If a part of it is open or running: a file, a generator, a lock.

    Examples
    --------
    >>> describe({"k": (2, 0.5)})
    {'dict': [['k', {'tuple': [2, 0.5]}]]}
    >>> from sklearn.preprocessing import MaxAbsScaler
    >>> describe(MaxAbsScaler(copy=False))["params"]
    {'clip': False, 'copy': False}
    """
    try:
        return _Description().of(obj)
    except RecursionError:
        raise Indescribable("it is nested too deeply") from None


def fingerprint(obj: Any) -> str:
    """Hash the description of an object, as 64 hexadecimal digits; see :func:`describe`."""
    return hashlib.sha256(_text(describe(obj)).encode()).hexdigest()


def fingerprint_or_warn(obj: Any, name: str) -> str | None:
    """Return the fingerprint of an object, or warn once that its results cannot be kept.

    Parameters
    ----------
    obj : object
    name : str
        What the warning calls it, such as ``"The feature 'moment'"``.
    """
    try:
        return fingerprint(obj)
    except Indescribable as error:
        warn_not_cached(name, error)
        return None


def warn_not_cached(name: str, error: Indescribable) -> None:
    """Warn once in a process that the results of an object cannot be kept, and why."""
    text = (
        f"{name} cannot be described ({error}). Its results are not cached: they are computed "
        "again at every start."
    )
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=4)


def _text(description: Any) -> str:
    return json.dumps(description, sort_keys=True, allow_nan=False)


# --- objects ---------------------------------------------------------------------------------


class _Description:
    """Describe one object; functions and classes are listed once and referred to by number."""

    def __init__(self) -> None:
        self._definitions: list[FunctionType | type] = []
        self._numbers: dict[int, int] = {}  # address to place in the list, which keeps it alive
        self._inside: list[int] = []  # addresses of the objects around a part
        self._keeps_state = False

    def of(self, obj: Any) -> Any:
        described, definitions = self._part(obj), []
        for code in self._definitions:  # more come while they are described
            try:
                definitions.append(self._define(code))
            except Indescribable as error:
                raise Indescribable(f"{code.__qualname__}: {error}") from None
        return {"object": described, "definitions": definitions} if definitions else described

    def _part(self, obj: Any) -> Any:
        if obj is None or type(obj) in (bool, int, str):
            return obj
        if type(obj) is float:
            return obj if math.isfinite(obj) else {"float": str(obj)}
        if isinstance(obj, FunctionType | type):
            return self._code(obj)
        if id(obj) in self._inside:
            return {"outer": len(self._inside) - self._inside.index(id(obj))}
        self._inside.append(id(obj))
        described = self._compound(obj)
        self._inside.pop()
        return described

    def _compound(self, obj: Any) -> Any:
        if type(obj) is list:
            return self._parts(obj)
        if type(obj) in (set, frozenset):
            return {"set": sorted(self._parts(obj), key=_text)}
        if type(obj) in _PARTS:
            name, parts = _PARTS[type(obj)]
            return {name: self._parts(parts(obj))}
        if isinstance(obj, ModuleType):
            return _describe_module(obj)
        if type(obj) is np.ndarray or isinstance(obj, np.generic):
            return self._array(np.asarray(obj))
        if callable(getattr(obj, "get_params", None)):
            return self._estimator(obj)
        return self._instance(obj)

    def _parts(self, parts: Iterable[Any]) -> list[Any]:
        return [self._part(part) for part in parts]

    def _by_name(self, parts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        described = {}
        for name, part in parts:
            try:
                described[str(name)] = self._part(part)
            except Indescribable as error:
                raise Indescribable(f"{name}: {error}") from None
        return described

    def _array(self, array: NDArray[Any]) -> Any:
        plain = not (array.dtype.hasobject or array.dtype.names)
        content = _sha256(array.tobytes()) if plain else self._part(array.tolist())
        return {"array": [str(array.dtype), list(array.shape), content]}

    def _estimator(self, obj: Any) -> Any:
        if self._keeps_state or _clones_itself(obj):
            outside, self._keeps_state = self._keeps_state, True
            described = self._instance(obj)
            self._keeps_state = outside
            return described
        try:
            params = obj.get_params(deep=False)
        except Exception as error:  # of a user's class
            raise Indescribable(f"{type(obj).__name__}.get_params: {error}") from error
        return {"class": self._part(type(obj)), "params": self._by_name(params.items())}

    def _instance(self, obj: Any) -> Any:
        kind = type(obj)
        if _library_version(kind.__module__) and callable(obj) and hasattr(obj, "__wrapped__"):
            # A function with a cache, or compiled by numba.
            options = getattr(obj, "targetoptions", None)
            return {"class": self._part(kind), "of": self._parts([obj.__wrapped__, options])}
        reduced = _reduce(obj)
        if isinstance(reduced, str):
            return _describe_named(obj, reduced)
        make, args, state, items, pairs = (*reduced, None, None, None)[:5]
        if make is copyreg.__newobj__:  # type: ignore[attr-defined]
            make, *args = args
        return {
            "class": self._part(make),
            "of": self._parts(args),
            "state": self._state(kind, state),
            "items": self._parts([*(items or ()), *(pairs or ())]),
        }

    def _state(self, kind: type, state: Any) -> Any:
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            return self._part(state)
        # What is computed when it is first asked for adds nothing to what it is computed from.
        lasting = {n for n in state if not isinstance(getattr(kind, n, None), cached_property)}
        if kind.__module__.startswith("scipy.stats."):
            lasting.discard("_random_state")  # a search draws from a distribution with its own
        return self._by_name((name, state[name]) for name in sorted(lasting))

    # --- functions and classes ---------------------------------------------------------------

    def _code(self, code: FunctionType | type) -> Any:
        """Name what a library has under its name; list the definition of anything else."""
        module, name = code.__module__, code.__qualname__
        version = _library_version(module) if _library_version(_module_of(code)) else None
        is_class = isinstance(code, type) and "<locals>" not in name  # some are not exported
        if version and (is_class or _resolve(module, name) is code):
            return {"name": f"{module}.{name}", "version": version}
        if id(code) not in self._numbers:
            self._numbers[id(code)] = len(self._definitions)
            self._definitions.append(code)
        return {"definition": self._numbers[id(code)]}

    def _define(self, code: FunctionType | type) -> Any:
        if isinstance(code, type):
            attributes = sorted(vars(code).items())
            return {
                "class": f"{code.__module__}.{code.__qualname__}",
                "bases": self._parts([type(code), *code.__bases__]),
                "attributes": self._by_name(a for a in attributes if a[0] not in _NOT_COMPUTED),
            }
        module = _module_of(code)
        version = _library_version(module)
        cells = zip(code.__code__.co_freevars, code.__closure__ or (), strict=True)
        return {
            "function": f"{module}.{code.__qualname__}",
            "code": self._part(code.__code__),
            "defaults": self._parts([code.__defaults__, code.__kwdefaults__]),
            "closure": self._by_name(cells),
            "attributes": self._by_name(sorted(vars(code).items())),
            # Of a library they belong to its version.
            "names": version or self._by_name(_named_values(code)),
        }


# --- parts of objects ------------------------------------------------------------------------


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _parts_of_code(code: CodeType) -> list[Any]:
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return [code.co_code, code.co_exceptiontable, *arguments, *names, code.co_consts]


def _parts_of_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []  # not assigned yet


# Of types: what to call an object, and what it is made of. Subclasses may be made of more.
_PARTS: dict[type, tuple[str, Callable[[Any], Iterable[Any]]]] = {
    tuple: ("tuple", list),
    dict: ("dict", lambda mapping: [list(item) for item in mapping.items()]),
    MappingProxyType: ("dict", lambda mapping: [list(item) for item in mapping.items()]),
    bytes: ("bytes", lambda content: [_sha256(content)]),
    complex: ("complex", lambda number: [number.real, number.imag]),
    partial: ("partial", lambda call: [call.func, *call.args, call.keywords]),
    MethodType: ("method", lambda method: [method.__func__, method.__self__]),
    CodeType: ("code", _parts_of_code),
    CellType: ("cell", _parts_of_cell),
    property: ("property", lambda wrapper: [wrapper.fget, wrapper.fset, wrapper.fdel]),
    cached_property: ("cached_property", lambda wrapper: [wrapper.func]),
    classmethod: ("classmethod", lambda wrapper: [wrapper.__func__]),
    staticmethod: ("staticmethod", lambda wrapper: [wrapper.__func__]),
}


def _clones_itself(obj: Any) -> bool:
    """Return whether ``clone`` keeps what an estimator has learned, as of a FrozenEstimator."""
    clone = getattr(type(obj), "__sklearn_clone__", None)
    return clone is not None and clone.__qualname__ != "BaseEstimator.__sklearn_clone__"


def _reduce(obj: Any) -> Any:
    reduce = copyreg.dispatch_table.get(type(obj))
    try:
        return reduce(obj) if reduce else obj.__reduce_ex__(4)
    except Exception as error:  # classes raise what they like
        raise Indescribable(f"{type(obj).__name__} object ({error})") from error


def _describe_named(obj: Any, name: str) -> Any:
    """Describe an object of a library that says it is known by its name."""
    for module in (getattr(obj, "__module__", None) or "builtins", "numpy", "scipy.special"):
        if (version := _library_version(module)) and _resolve(module, name) is obj:
            return {"name": f"{module}.{name}", "version": version}
    raise Indescribable(f"{type(obj).__name__} {name!r} belongs to no library")


def _describe_module(module: ModuleType) -> Any:
    version = _library_version(module.__name__)
    if version is None:
        raise Indescribable(f"the module {module.__name__} is used as a whole")
    return {"name": module.__name__, "version": version}


def _resolve(module: str, name: str) -> Any:
    """Look up a name in a module that is loaded; None if it is not there."""
    obj: Any = sys.modules.get(module)
    for part in name.split("."):
        obj = getattr(obj, part, None)
    return obj


# --- what code names -------------------------------------------------------------------------


def _named_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """List what code names outside of itself, with its value: globals, and what it imports.

    A module of the user is what the code names of it.
    """
    codes = list(_with_nested(function.__code__))
    parts = sorted({part for code in codes for name in code.co_names for part in name.split(".")})
    values = [
        (name, function.__globals__[name])
        for name in dict.fromkeys(name for code in codes for name in _global_names(code))
        if name in function.__globals__  # otherwise of Python itself
    ]
    values += [imported for code in codes for imported in _imported(code, function)]
    modules = set()
    for label, value in values:  # which grow
        if not isinstance(value, ModuleType) or _library_version(value.__name__):
            yield label, value
        elif value.__name__ not in modules:
            modules.add(value.__name__)
            named = [part for part in parts if hasattr(value, part)]
            if not named:
                _describe_module(value)
            values += [(f"{value.__name__}.{part}", getattr(value, part)) for part in named]


def _with_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_nested(constant)


def _global_names(code: CodeType) -> list[str]:
    return [step.argval for step in dis.get_instructions(code) if step.opname in _GLOBAL_LOADS]


def _imported(code: CodeType, function: FunctionType) -> Iterator[tuple[str, Any]]:
    """List what code imports: a user's module, and the version of a library."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for level, names, step in zip(steps, steps[1:], steps[2:], strict=False):
        if step.opname == "IMPORT_NAME":
            value: Any = None if level.argval else _library_version(step.argval)
            if value is None:  # a library may take long to load
                arguments = step.argval, function.__globals__, None, names.argval, level.argval
                try:
                    value = __import__(*arguments)
                except ImportError:
                    pass  # the code may do without it
                except Exception as error:
                    raise Indescribable(f"import {step.argval}: {error}") from error
            yield f"import {step.argval}", value


# --- libraries -------------------------------------------------------------------------------


def _module_of(code: FunctionType | type) -> str:
    """Return the module in which code was written: wrappers take the name of what they wrap."""
    if isinstance(code, FunctionType):
        return str(code.__globals__.get("__name__"))
    return code.__module__


def _library_version(module: str) -> str | None:
    """Return the version of the library that a module belongs to; None if it is the user's."""
    return _version_of_package(module.partition(".")[0])


@cache
def _version_of_package(package: str) -> str | None:
    if package == __name__.partition(".")[0]:
        return __version__
    if package == "__main__":
        return None
    if package in sys.stdlib_module_names:
        return platform.python_version()
    # Not what is installed to be edited: its version stays while it changes.
    if {"site-packages", "dist-packages"}.isdisjoint(Path(_location(package)).parts):
        return None
    try:
        return importlib.metadata.version(_DISTRIBUTIONS.get(package, package))
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package)
        return importlib.metadata.version(names[0]) if names else None


def _location(package: str) -> str:
    """Return a file or folder of a package, empty if there is none."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return ""
    return spec.origin or next(iter(spec.submodule_search_locations or ()), "")
