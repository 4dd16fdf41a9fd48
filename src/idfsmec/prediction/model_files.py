"""Files of models: a ZIP archive by skops, without pickle; what may be in it is on a list."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from idfsmec._files import replacing
from idfsmec._version import __version__
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.prediction.harmonizer import SiteHarmonizer
from idfsmec.prediction.imputer import ChannelImputer
from idfsmec.prediction.model import Model

#: How the files of models end.
ENDING = ".skops"
#: Raised when files of before can no longer be read.
FORMAT_VERSION = 1
#: Types that a model file may hold, besides those that skops itself trusts: plain containers,
#: NumPy's arrays, scikit-learn's estimators. Whatever else a file names is refused.
TRUSTED_TYPES = (
    "idfsmec.prediction.classifier.View",
    "idfsmec.prediction.classifier.IDFSMECClassifier",
    "idfsmec.prediction.imputer.ChannelImputer",
    "idfsmec.prediction.imputer.FactorModel",
    "idfsmec.prediction.harmonizer.SiteHarmonizer",
    "idfsmec.prediction.method.FittedMethod",
    "idfsmec.prediction.method.GapMarks",
    "idfsmec.prediction.imputer.ScalpSplines",
    "idfsmec.solver.scaling.Scaling",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
)
_ABOUT = "idfsmec.json"
_MOST_BYTES = 2**31  # unpacked; nobody's model has as many
_ABOUT_FIELDS = (
    "columns",
    "settings",
    "data",
    "reference",
    "protocol",
    "performance",
    "versions",
    "created",
)


def save_model(model: Model, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a model to a file, without pickle.

    The file is written by :mod:`skops.io`, a ZIP archive of arrays and a description of how they
    belong together; ``idfsmec.json`` in it has the rest, for anybody to read.

    Parameters
    ----------
    model : Model
    path : path-like
        Ends in ``.skops``.
    overwrite : bool
        Whether to replace a file that is there.

    Returns
    -------
    Path

    Raises
    ------
    ExistingFileError
    InputError
        The name ends otherwise, or the estimator has parts that :func:`load_model` would refuse.
    """
    from skops import io as skops_io

    path = check_model_path(path, overwrite=overwrite)
    parts = {"estimator": model.estimator, "completer": model.completer}
    if model.harmonizer is not None:
        parts["harmonizer"] = model.harmonizer
    content = skops_io.dumps(parts, compression=zipfile.ZIP_DEFLATED)
    if foreign := _foreign_types(content):
        raise InputError(
            f"{path}: a model file cannot hold {', '.join(foreign)}: it would not be trusted when "
            "it is read. Use parts of scikit-learn and idfsmec."
        )
    about = {
        "format": FORMAT_VERSION,
        "idfsmec": __version__,
        "classes": model.classes,
        **{name: getattr(model, name) for name in _ABOUT_FIELDS},
    }
    about["checksum"] = _checksum(content, about)
    with replacing(path) as (beside,):
        beside.write_bytes(content)
        with zipfile.ZipFile(beside, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_ABOUT, json.dumps(about, indent=1, allow_nan=False))
    return path


def check_model_path(path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a name for a model before the work begins."""
    path = Path(path)
    if path.suffix.lower() != ENDING:
        raise InputError(f"{path}: a model's name ends in {ENDING}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not overwrite:
        raise ExistingFileError(path)
    return path


def load_model(path: str | PathLike[str]) -> Model:
    """Read a model that :func:`save_model` wrote.

    Nothing in the file is run, and only :data:`TRUSTED_TYPES` and what skops trusts is made from
    it, whoever wrote it. The checksum finds damage, not malice: take models from people you know.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Model

    Raises
    ------
    InputError
        It is no model, is damaged, comes from another version, or names other types.
    """
    from skops import io as skops_io

    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such model file.")
    content = path.read_bytes()
    about = _read_about(path, content)
    try:
        foreign = _foreign_types(content)
        if foreign:
            raise InputError(
                f"{path}: refused, for it holds {', '.join(foreign)}, which no model of idfsmec "
                "does. Take models only from people you trust."
            )
        parts = skops_io.loads(content, trusted=list(TRUSTED_TYPES))
        model = Model(
            parts["estimator"],
            parts["completer"],
            **{name: about[name] for name in _ABOUT_FIELDS if name != "columns"},
            columns=tuple(about["columns"]),
            harmonizer=parts.get("harmonizer"),
        )
        _check_parts(model, about["classes"])
    except InputError:
        raise
    except Exception as error:  # whatever a changed description leads to
        raise InputError(f"{path}: the model file is damaged ({_line(error)}).") from error
    return model


def _read_about(path: Path, content: bytes) -> dict[str, Any]:
    """Read what can be read without making anything, and refuse what cannot be used."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise InputError(f"{path}: the model file is too large to be one.")
            about = json.loads(archive.read(_ABOUT))
        made_with, number = str(about["idfsmec"]), about["format"]
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path}: this is no model file of idfsmec ({_line(error)}).") from error
    if number != FORMAT_VERSION or _minor(made_with) != _minor(__version__):
        raise InputError(
            f"{path}: the model was made by idfsmec {made_with}, this is {__version__}. Train it "
            "again, or use that version."
        )
    try:
        whole = about.pop("checksum") == _checksum(content, about)
    except Exception as error:
        raise InputError(f"{path}: the model file is damaged ({_line(error)}).") from error
    if not whole:
        raise InputError(
            f"{path}: the model file was changed or damaged (its checksum does not fit). Copy it "
            "again from where it came."
        )
    return dict(about)


def file_checksum(path: str | PathLike[str]) -> str:
    """SHA-256 of a file, as ``sha256sum`` prints it."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _foreign_types(content: bytes) -> list[str]:
    from skops import io as skops_io

    return sorted(set(skops_io.get_untrusted_types(data=content)) - set(TRUSTED_TYPES))


def _check_parts(model: Model, classes: Sequence[Any]) -> None:
    if not isinstance(model.completer, ChannelImputer):
        raise TypeError("there is no completer")
    if not isinstance(model.harmonizer, SiteHarmonizer | None):
        raise TypeError("its harmonizer is none")
    if model.harmonizer is not None and model.harmonizer.n_features_in_ != len(model.columns):
        raise ValueError("its harmonizer has other columns")
    if model.classes != list(classes):
        raise ValueError("its classes are not those of its description")
    if model.estimator.n_features_in_ != len(model.columns):
        raise ValueError("its columns are not those of its description")


def _checksum(content: bytes, about: Mapping[str, Any]) -> str:
    """Hash the members of the archive, in any order and however packed, and the description."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in sorted(set(archive.namelist()) - {_ABOUT}):
            digest.update(f"{name}\n".encode())
            digest.update(hashlib.sha256(archive.read(name)).digest())
    digest.update(json.dumps(about, sort_keys=True, allow_nan=False).encode())
    return digest.hexdigest()


def _minor(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")[:2])


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
