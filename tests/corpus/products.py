"""Damaged and forged files of the package itself: models, summaries, results and settings."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sqlite3
import tempfile
import zipfile
from functools import cache, partial
from pathlib import Path

import numpy as np

from idfsmec import cli
from tests.federated.cohorts import cohort

from .case import ACCEPTED, EITHER, REFUSED, Case
from .recordings import HTML
from .sound import files_of_format, flip_bits

RANDOM = np.random.default_rng(6).bytes(3000)
ABOUT = "idfsmec.json"


@cache
def _products():
    """A table, and what the commands make of it, as bytes by name."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        table = cohort(48).write(folder / "table.csv")
        other = cohort(48, seed=1, prefix="t").write(folder / "other.csv")
        cli.train(table, folder / "model.skops", repeats=1)
        key = folder / "study.key"
        for site, source in (("a", table), ("b", other)):
            ledger = folder.parent / f"{folder.name}-{site}.sqlite"
            cli.summarise(
                source, folder / f"{site}.summary", site=site, study_key=key, ledger=ledger
            )
        cli.benchmark(
            table,
            folder / "results",
            experiment="accuracy",
            methods=["ANOVA F"],
            rates=[0.0],
            k=[2],
            folds=2,
            resamples=0,
            jobs=1,
        )
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }


def _write(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(_products()[name])


# --- models -----------------------------------------------------------------------------


def _model(change, folder):
    """Predict with a model whose bytes were changed."""
    _write(folder, "table.csv", "table.csv.info.json")
    content = change(_products()["model.skops"])
    if content is not None:
        (folder / "model.skops").write_bytes(content)
    return ["predict", str(folder / "model.skops"), str(folder / "table.csv")]


def _members(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _sealed(members, about):
    """Give forged members the checksum that fits them."""
    digest = hashlib.sha256()
    for name in sorted(set(members) - {ABOUT}):
        digest.update(f"{name}\n".encode() + hashlib.sha256(members[name]).digest())
    digest.update(json.dumps(about, sort_keys=True).encode())
    about = {**about, "checksum": digest.hexdigest()}
    return _packed({**members, ABOUT: json.dumps(about).encode()})


def _described(change, whole):
    """Change the description of a model and seal it again."""
    members = _members(whole)
    about = json.loads(members[ABOUT])
    del about["checksum"]
    return _sealed(members, change(about))


def _arrays(change, whole):
    """Change all arrays of a model and seal it again."""
    members = _members(whole)
    about = json.loads(members[ABOUT])
    del about["checksum"]
    for name in members:
        if name.endswith(".npy"):
            array = np.load(io.BytesIO(members[name]))
            if array.dtype.kind == "f":
                file = io.BytesIO()
                np.save(file, change(array))
                members[name] = file.getvalue()
    return _sealed(members, about)


def _schema(old, new, whole):
    """Replace a text in skops' description of the types, and seal it again."""
    members = _members(whole)
    about = json.loads(members[ABOUT])
    del about["checksum"]
    members["schema.json"] = members["schema.json"].replace(old, new)
    return _sealed(members, about)


def _twice(whole):
    members = _members(whole)
    file = io.BytesIO(whole)
    with zipfile.ZipFile(file, "a") as archive:
        archive.filelist.append(archive.infolist()[0])
        archive._didModify = True
    del members
    return file.getvalue()


def _bomb(whole):
    return _packed({**_members(whole), "zeros": bytes(2**31)})


def _bad_model(name, change, *said, ending=REFUSED):
    return Case(f"model: {name}", ending, ("model.skops", *said), partial(_model, change))


def _set(name, value, about):
    return {**about, name: value}


MODELS = [
    _bad_model("not there", lambda whole: None, "no such"),
    _bad_model("empty", lambda whole: b""),
    _bad_model("random bytes", lambda whole: RANDOM),
    _bad_model("a web page", lambda whole: HTML),
    _bad_model("a pickle", lambda whole: b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00."),
    _bad_model("cut in the middle", lambda whole: whole[: len(whole) // 2]),
    _bad_model("cut in front", lambda whole: whole[200:], ending=EITHER),
    *(
        _bad_model(f"bits flipped, {seed}", partial(flip_bits, seed=seed, n=8), ending=EITHER)
        for seed in range(5)
    ),
    _bad_model("an empty archive", lambda whole: _packed({})),
    _bad_model("an archive of something else", lambda whole: _packed({"a.txt": b"a"})),
    _bad_model(
        "no description",
        lambda whole: _packed({k: v for k, v in _members(whole).items() if k != ABOUT}),
    ),
    _bad_model("a description cut", lambda whole: _packed({**_members(whole), ABOUT: b'{"a": 1'})),
    _bad_model("a description that is a list", lambda whole: _packed({ABOUT: b"[1]"})),
    _bad_model("nested beyond all", lambda whole: _packed({ABOUT: b"[" * 100_000})),
    _bad_model("no checksum", lambda whole: _packed({**_members(whole), ABOUT: b'{"format": 1}'})),
    _bad_model("a file added", lambda whole: _packed({**_members(whole), "../../x": b"x"})),
    _bad_model("an entry twice", _twice),
    _bad_model("two gigabytes of zeros", _bomb, "too large"),
    _bad_model("of the future", partial(_described, partial(_set, "format", 99)), "99"),
    _bad_model("of another release", partial(_described, partial(_set, "idfsmec", "9.9.9"))),
    _bad_model("no columns", partial(_described, partial(_set, "columns", []))),
    _bad_model("columns that are numbers", partial(_described, partial(_set, "columns", 7))),
    _bad_model("null columns", partial(_described, partial(_set, "columns", None))),
    _bad_model("other classes", partial(_described, partial(_set, "classes", ["a", "b"]))),
    _bad_model("null classes", partial(_described, partial(_set, "classes", None))),
    _bad_model(
        "names of columns twice",
        partial(_described, lambda about: {**about, "columns": about["columns"][:1] * 12}),
    ),
    _bad_model("arrays of NaN", partial(_arrays, lambda array: array * np.nan)),
    _bad_model("arrays of infinity", partial(_arrays, lambda array: array + np.inf)),
    _bad_model("empty arrays", partial(_arrays, lambda array: array[:0])),
    _bad_model("arrays of complex numbers", partial(_arrays, lambda array: array * 1j)),
    _bad_model("a type that runs programs", partial(_schema, b'"IDFSMECClassifier"', b'"Popen"')),
    _bad_model("a module nobody has", partial(_schema, b"idfsmec.prediction", b"os.path")),
    Case(
        "model: is a folder",
        REFUSED,
        ("model.skops",),
        lambda folder: [
            *_model(lambda whole: (folder / "model.skops").mkdir(), folder),
        ],
    ),
]

# --- tables that a sound model is given ---------------------------------------------------


def _given(change, folder):
    _write(folder, "model.skops")
    change(cohort(4, missing=0.0, seed=3)).to_csv(folder / "new.csv", index=False)
    return ["predict", str(folder / "model.skops"), str(folder / "new.csv")]


def _predicted(name, change, *said, ending=REFUSED):
    build = partial(_given, lambda table: change(table.to_frame()))
    return Case(f"predict: {name}", ending, said, build)


GIVEN = [
    _predicted("no column of the model", lambda f: f.filter(regex="subject|label|O2__theta")),
    _predicted("no channel of the model", lambda f: f[["subject", "label"]].assign(X9__a=1.0)),
    _predicted("no rows", lambda f: f.iloc[:0], "no rows"),
    _predicted("no subjects", lambda f: f.drop(columns="subject"), "'subject'"),
    _predicted("infinity", lambda f: f.assign(Cz__alpha=np.inf), "'Cz__alpha'"),
    _predicted("text", lambda f: f.assign(Cz__alpha="high"), "'Cz__alpha'"),
    _predicted(
        "nothing observed",
        lambda f: f.assign(**dict.fromkeys(f.columns[2:], np.nan)),
        ending=EITHER,
    ),
    _predicted("one cell of 1e300", lambda f: f.assign(Cz__alpha=[1e300] * len(f)), ending=EITHER),
    _predicted(
        "all cells of 1e-300",
        lambda f: f.assign(**dict.fromkeys(f.columns[2:], 1e-300)),
        ending=EITHER,
    ),
]

# --- summaries --------------------------------------------------------------------------


def _summary(change, folder):
    """Rank with a sound summary and one whose bytes were changed."""
    _write(folder, "a.summary", "b.summary")
    content = change(_products()["b.summary"])
    (folder / "b.summary").write_bytes(content)
    return ["select", str(folder / "a.summary"), str(folder / "b.summary")]


def _loaded(whole):
    with np.load(io.BytesIO(whole)) as loaded:
        return dict(loaded)


def _saved(arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


SUMMED = ("subjects", "count", "shift", "scale", "sum_x", "sum_xx", "sum_mean_squares")


def _forged(change, whole, sealed=True):
    """Change arrays of a summary, and its checksum with them."""
    arrays = _loaded(whole)
    change(arrays)
    if sealed:
        digest = hashlib.sha256(arrays["about"].tobytes())
        for name in SUMMED:
            array = np.ascontiguousarray(arrays[name])
            digest.update(f"{name}{array.shape}".encode() + array.tobytes())
        arrays["checksum"] = np.frombuffer(digest.hexdigest().encode(), dtype=np.uint8)
    return _saved(arrays)


def _to(name, change):
    def do(arrays):
        arrays[name] = change(arrays[name])

    return do


def _about(**changes):
    def do(arrays):
        about = json.loads(arrays["about"].tobytes())
        arrays["about"] = np.frombuffer(json.dumps({**about, **changes}).encode(), dtype=np.uint8)

    return do


def _objects(arrays):
    arrays["sum_x"] = np.array([{"a": 1}], dtype=object)


def _bad_summary(name, change, *said, ending=REFUSED):
    words = ("b.summary", *said)
    return Case(f"summary: {name}", ending, words, partial(_summary, change))


def _forgery(name, change, *said, ending=REFUSED):
    return _bad_summary(name, partial(_forged, change), *said, ending=ending)


SUMMARIES = [
    _bad_summary("empty", lambda whole: b""),
    _bad_summary("random bytes", lambda whole: RANDOM),
    _bad_summary("a web page", lambda whole: HTML),
    _bad_summary("a table", lambda whole: _products()["table.csv"]),
    _bad_summary("a model", lambda whole: _products()["model.skops"]),
    _bad_summary("cut in the middle", lambda whole: whole[: len(whole) // 2]),
    *(
        _bad_summary(f"bits flipped, {seed}", partial(flip_bits, seed=seed, n=8), ending=EITHER)
        for seed in range(5)
    ),
    _bad_summary("arrays of something else", lambda whole: _saved({"a": np.eye(3)})),
    _bad_summary("objects in place of numbers", partial(_forged, _objects, sealed=False)),
    _bad_summary("a number changed", partial(_forged, _to("sum_x", np.negative), sealed=False)),
    _bad_summary(
        "an array lost", partial(_forged, lambda arrays: arrays.pop("sum_xx"), sealed=False)
    ),
    _forgery("arrays of NaN", _to("sum_x", lambda array: array * np.nan)),
    _forgery("products of infinity", _to("sum_xx", lambda array: array + np.inf)),
    _forgery("negative numbers of participants", _to("subjects", np.negative)),
    _forgery("more participants with a channel than there are", _to("count", lambda n: n + 99)),
    _forgery("no participants", _to("subjects", np.zeros_like)),
    _forgery("negative squares", _to("sum_xx", lambda array: -np.abs(array))),
    _forgery("scales of zero", _to("scale", np.zeros_like)),
    _forgery("another shape", _to("sum_x", lambda array: array[..., :1])),
    _forgery("numbers as text", _to("sum_x", lambda array: array.astype("U8"))),
    _forgery("complex numbers", _to("sum_x", lambda array: array * 1j)),
    _forgery("of the future", _about(format_version=99)),
    _forgery("of an earlier release", _about(format_version=1), "earlier"),
    _forgery("a version in words", _about(format_version="four")),
    _forgery("other labels", _about(labels=["a", "b"])),
    _forgery("one label", _about(labels=["HC"])),
    _forgery("null labels", _about(labels=None)),
    _forgery("other columns", _about(columns=[f"X__{i}" for i in range(12)])),
    _forgery("null columns", _about(columns=None)),
    _forgery("a column twice", _about(columns=["F3__theta"] * 12)),
    _forgery("no settings", _about(settings=None), ending=EITHER),
    _forgery("a site in markup", _about(site="[/red]<script>"), ending=EITHER),
    Case(
        "summary: the same one twice",
        REFUSED,
        ("a.summary",),
        lambda folder: _summary(lambda whole: _products()["a.summary"], folder),
    ),
]

# --- results of a benchmark -------------------------------------------------------------


def _results(change, folder):
    """Make a page of a folder in which something was changed."""
    names = [name for name in _products() if name.startswith("results/")]
    _write(folder, *names)
    change(folder / "results")
    return ["report", str(folder / "results")]


def _replace(name, content):
    def do(results):
        whole = (results / name).read_bytes()
        (results / name).write_bytes(content(whole) if callable(content) else content)

    return do


def _sql(*statements):
    def do(results):
        with sqlite3.connect(results / "store.sqlite") as database:
            for statement in statements:
                database.execute(statement)
        database.close()

    return do


def _tables(results):
    with sqlite3.connect(results / "store.sqlite") as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
    database.close()
    return [name for name in names if not name.startswith("sqlite_")]


def _drop_all(results):
    _sql(*(f'DROP TABLE "{name}"' for name in _tables(results)))(results)


def _instead(make):
    def do(results):
        (results / "store.sqlite").unlink()
        make(results / "store.sqlite")

    return do


def _bad_store(name, change, *said, ending=REFUSED):
    return Case(f"store: {name}", ending, ("results", *said), partial(_results, change))


STORES = [
    _bad_store("no folder", shutil.rmtree),
    _bad_store("an empty folder", lambda at: [path.unlink() for path in at.rglob("*.*")]),
    _bad_store("no store", lambda at: (at / "store.sqlite").unlink()),
    _bad_store("empty", _replace("store.sqlite", b"")),
    _bad_store("random bytes", _replace("store.sqlite", RANDOM)),
    _bad_store("a web page", _replace("store.sqlite", HTML)),
    _bad_store("cut in the middle", _replace("store.sqlite", lambda w: w[: len(w) // 2])),
    _bad_store("zeros in the middle", _replace("store.sqlite", lambda w: w[:4096] + bytes(8192))),
    _bad_store("is a folder", _instead(Path.mkdir)),
    _bad_store("is a pipe", _instead(os.mkfifo)),
    _bad_store("no tables", _drop_all),
    _bad_store("of another program", _sql("PRAGMA application_id = 7"), ending=EITHER),
    _bad_store("a table too many", _sql("CREATE TABLE x (a)"), ending=EITHER),
    *(
        _bad_store(
            f"bits flipped, {seed}",
            _replace("store.sqlite", partial(flip_bits, seed=seed, n=5)),
            ending=EITHER,
        )
        for seed in range(8)
    ),
    *(
        _bad_store(f"{what} of a table", _replace("results.parquet", content), ending=ACCEPTED)
        for what, content in {"an empty export": b"", "random bytes": RANDOM}.items()
    ),
]

# --- settings ---------------------------------------------------------------------------


def _settings(content, folder):
    (folder / "s1.edf").write_bytes(files_of_format("edf", seed=1)["recording.edf"])
    (folder / "s2.edf").write_bytes(files_of_format("edf", seed=2)["recording.edf"])
    (folder / "study.csv").write_text("path,subject,label\ns1.edf,s1,HC\ns2.edf,s2,MDD\n")
    config = folder / "settings.toml"
    if content is not None:
        config.write_bytes(content if isinstance(content, bytes) else content.encode())
    return ["features", str(folder / "study.csv"), "--config", str(config)]


def _bad_settings(name, content, *said, ending=REFUSED):
    words = ("settings.toml", *said) if ending == REFUSED else said
    return Case(f"settings: {name}", ending, words, partial(_settings, content))


QUICK = 'epoch = 4\nfeatures = ["ap"]\ndetect = false\n'
SETTINGS = [
    _bad_settings("not there", None),
    _bad_settings("not TOML", "epoch: 4\n"),
    _bad_settings("random bytes", RANDOM),
    _bad_settings("latin-1", "# für\n".encode("latin-1")),
    _bad_settings("UTF-16", QUICK.encode("utf-16")),
    _bad_settings("bytes of zero", bytes(100)),
    _bad_settings("a web page", HTML),
    _bad_settings("a key twice", QUICK + "epoch = 5\n"),
    _bad_settings("an unknown key", "epochs = 4\n", "epochs"),
    _bad_settings("an unknown table", "[filter]\nlow = 1\n", "filter"),
    _bad_settings("nested beyond all", "a = " + "[" * 50_000),
    _bad_settings("a number in words", 'epoch = "four"\n', "epoch"),
    _bad_settings("a negative length", "epoch = -4\n", "epoch"),
    _bad_settings("no length", "epoch = 0\n", "epoch"),
    _bad_settings("NaN", "epoch = nan\n", "epoch"),
    _bad_settings("infinity", "epoch = inf\n", "epoch"),
    _bad_settings("a date", "epoch = 2026-01-01\n", "epoch"),
    _bad_settings("a truth", "epoch = true\n", "epoch"),
    _bad_settings("a number for a list", "features = 7\n", "features"),
    _bad_settings("an unknown feature", 'features = ["power of will"]\n', "power of will"),
    _bad_settings("no features", "epoch = 4\nfeatures = []\n", ending=EITHER),
    _bad_settings("a word for a truth", 'detect = "no"\n', "detect"),
    _bad_settings("bands upside down", "[bands]\nalpha = [13, 8]\n", "alpha"),
    _bad_settings("a band of one edge", "[bands]\nalpha = [8]\n", "alpha"),
    _bad_settings("a band of words", '[bands]\nalpha = ["low", "high"]\n', "alpha"),
    _bad_settings("empty channels", 'channels = [""]\n', "channels"),
    _bad_settings("a channel that nobody has", QUICK + 'channels = ["Q9"]\n', ending=EITHER),
    _bad_settings("nothing", "", ending=EITHER),
    _bad_settings("comments and a byte order mark", b"\xef\xbb\xbf# hello\n", ending=EITHER),
    _bad_settings("sound", QUICK, ending=ACCEPTED),
]

CASES = [*MODELS, *GIVEN, *SUMMARIES, *STORES, *SETTINGS]
