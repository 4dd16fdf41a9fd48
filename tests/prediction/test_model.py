"""Model files: whole, readable again, and nothing in them is trusted that is not on the list."""

import hashlib
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skops import io as skops_io

from idfsmec import __version__
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features import FeatureSettings
from idfsmec.prediction import (
    METHODS,
    TRUSTED_TYPES,
    SiteHarmonizer,
    fit_model,
    load_model,
    predict_subjects,
    save_model,
)
from idfsmec.report.documents import metric_rows
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort, make_hospitals


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def change_about(path, **changes):
    content = members(path)
    about = json.loads(content["idfsmec.json"]) | changes
    rewrite(path, content | {"idfsmec.json": json.dumps(about)})


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def forge(path, content):
    """Write members with a checksum that fits, as somebody who wants to be believed would."""
    about = json.loads(content["idfsmec.json"])
    about.pop("checksum")
    digest = hashlib.sha256()
    for name in sorted(set(content) - {"idfsmec.json"}):
        digest.update(f"{name}\n".encode())
        digest.update(hashlib.sha256(content[name]).digest())
    digest.update(json.dumps(about, sort_keys=True).encode())
    about["checksum"] = digest.hexdigest()
    rewrite(path, content | {"idfsmec.json": json.dumps(about)})


class Bystander(ClassifierMixin, BaseEstimator):
    """A class that no model of ours has."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict_proba(self, X):
        return np.full((len(X), self.classes_.size), 1 / self.classes_.size)


def test_a_model_read_again_says_the_same(small_model, model_file, cohort_table):
    again = load_model(model_file)
    assert again.columns == small_model.columns
    assert again.data == small_model.data
    assert again.classes == ["HC", "MDD"]
    assert again.versions["scikit-learn"]
    before, after = (predict_subjects(one, cohort_table).frame for one in (small_model, again))
    assert before.equals(after)


def test_nobody_is_named_in_a_model(tmp_path, cohort_table):
    named = FeatureTable(
        cohort_table.X,
        cohort_table.y,
        "Smith" + cohort_table.subjects,
        {"recordings": [{"name": "Smith.edf", "subject": "Smith"}], "epoch": 10.0},
    )
    path = save_model(fit_model(named), tmp_path / "model.skops")
    assert not any(b"Smith" in data for data in members(path).values())
    assert load_model(path).settings == {"epoch": 10.0}


def test_pipelines_of_scikit_learn_can_be_kept(tmp_path, cohort_table):
    steps = (SimpleImputer(), StandardScaler(), LogisticRegression())
    model = fit_model(cohort_table, make_pipeline(*steps))
    again = load_model(save_model(model, tmp_path / "model.skops"))
    said = predict_subjects(again, cohort_table)
    assert said.subjects[0].votes == {}
    assert said.frame.equals(predict_subjects(model, cohort_table).frame)


def test_labels_that_are_numbers_stay_numbers(tmp_path):
    table = make_cohort()
    numbers = FeatureTable(table.X, (table.y == "MDD").astype(int), table.subjects)
    model = fit_model(numbers, DummyClassifier())
    assert load_model(save_model(model, tmp_path / "model.skops")).classes == [0, 1]


def test_a_file_is_replaced_on_demand_only(small_model, model_file):
    with pytest.raises(ExistingFileError, match="exists already"):
        save_model(small_model, model_file)
    assert save_model(small_model, model_file, overwrite=True) == model_file
    names = sorted(one.name for one in model_file.parent.iterdir())
    assert names == ["model.skops", "model.skops.training.json"]


@pytest.mark.parametrize("name", ["model", "model.pkl", "model.parquet"])
def test_a_model_has_its_ending(small_model, tmp_path, name):
    with pytest.raises(InputError, match=r"ends in \.skops"):
        save_model(small_model, tmp_path / name)


def test_an_estimator_that_would_be_refused_later_is_refused_now(tmp_path, cohort_table):
    model = fit_model(cohort_table, Bystander())
    with pytest.raises(InputError, match=r"cannot hold .*Bystander"):
        save_model(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_types_that_are_not_listed_are_refused_by_name(monkeypatch, tmp_path, cohort_table):
    path = tmp_path / "model.skops"
    own = f"{Bystander.__module__}.Bystander"
    with monkeypatch.context() as lenient:
        lenient.setattr("idfsmec.prediction.model.TRUSTED_TYPES", (*TRUSTED_TYPES, own))
        save_model(fit_model(cohort_table, Bystander()), path)
    with pytest.raises(InputError, match=r"model\.skops: refused, .*test_model\.Bystander"):
        load_model(path)


FOREIGN = [
    {"__class__": "Popen", "__module__": "subprocess", "__loader__": "ObjectNode"},
    {"__class__": "system", "__module__": "posix", "__loader__": "FunctionNode"},
    {"__class__": "eval", "__module__": "builtins", "__loader__": "FunctionNode"},
    {"__class__": "eval", "__module__": "builtins", "__loader__": "TypeNode"},
    {"__class__": "Model", "__module__": "idfsmec.prediction.model", "__loader__": "ObjectNode"},
    {"__class__": "partial", "__module__": "functools", "__loader__": "PartialNode"},
    {"__class__": "methodcaller", "__module__": "operator", "__loader__": "OperatorFuncNode"},
]


@pytest.mark.parametrize("place", ["the estimator", "a parameter"])
@pytest.mark.parametrize("part", FOREIGN, ids=lambda part: part["__class__"])
def test_foreign_types_with_checksums_that_fit_are_refused(model_file, place, part, capfd):
    content = members(model_file)
    schema = json.loads(content["schema.json"])
    of = {"module_path": part["__module__"], "function": part["__class__"]}
    forged = {**part, "__id__": 10**6, "content": of}
    if part["__loader__"] not in ("FunctionNode", "TypeNode"):
        some = json.loads(json.dumps(schema["content"]["estimator"]["content"]))  # a dictionary
        parts = dict.fromkeys(("func", "args", "kwds", "namespace"), some)
        forged |= {"content": parts if part["__class__"] == "partial" else some, "attrs": some}
    if place == "the estimator":
        schema["content"]["estimator"] = forged
    else:
        schema["content"]["estimator"]["content"]["content"]["lam"] = forged
    forge(model_file, content | {"schema.json": json.dumps(schema).encode()})
    name = f"{part['__module__']}.{part['__class__']}"
    with pytest.raises(InputError, match=rf"model\.skops: refused, because it holds .*{name}"):
        load_model(model_file)
    assert "broken in" not in capfd.readouterr().out


@pytest.mark.parametrize("name", ["schema.json", "idfsmec.json", "an array"])
def test_a_changed_file_is_refused(model_file, name):
    content = members(model_file)
    name = next(one for one in content if one.endswith(".npy")) if name == "an array" else name
    if name == "idfsmec.json":
        change_about(model_file, data={"n_subjects": 10_000})
    else:
        changed = bytearray(content[name])
        changed[-3] ^= 1
        rewrite(model_file, content | {name: bytes(changed)})
    with pytest.raises(InputError, match="was changed or damaged"):
        load_model(model_file)


def test_a_file_of_another_version_is_refused(model_file):
    change_about(model_file, idfsmec="9.2.1")
    with pytest.raises(InputError, match=r"made by idfsmec 9\.2\.1, this is"):
        load_model(model_file)
    change_about(model_file, idfsmec=__version__, format=1)
    with pytest.raises(InputError, match=r"format 1 and 7\)\. Train it again"):
        load_model(model_file)


def test_what_is_no_model_is_refused(tmp_path):
    absent, text, foreign = (tmp_path / f"{one}.skops" for one in ("absent", "text", "foreign"))
    text.write_text("subject,label\n")
    skops_io.dump(Counter("ab"), foreign)
    with pytest.raises(InputError, match="no such model file"):
        load_model(absent)
    for path in (text, foreign):
        with pytest.raises(InputError, match="no model file of idfsmec"):
            load_model(path)


def test_a_truncated_file_is_refused(model_file):
    model_file.write_bytes(model_file.read_bytes()[:-200])
    with pytest.raises(InputError, match="no model file of idfsmec"):
        load_model(model_file)


def test_a_table_of_one_class_has_no_model(cohort_table):
    one = cohort_table.take((cohort_table.y == "HC").to_numpy())
    with pytest.raises(InputError, match="needs two classes"):
        fit_model(one)


def test_settings_come_back_from_a_table():
    given = FeatureSettings(features=["ap", "hoc"], hoc_orders=3, bands={"mu": (8, 12)}, epoch=4)
    again = FeatureSettings.from_dict(given.as_dict(), given.columns)
    assert again.digest() == given.digest()
    with pytest.raises(InputError, match="No registered feature gives mood"):
        FeatureSettings.from_dict(given.as_dict(), ["hoc_1", "mood"])
    with pytest.raises(InputError, match="does not state how its features were computed"):
        FeatureSettings.from_dict({}, ["hoc_1"])


def test_a_model_learns_its_sites_from_controls_and_says_what_became_of_new_ones(tmp_path):
    table = make_hospitals(3, shift=4.0, effect=2.0, n_epochs=6)
    model = fit_model(table, harmonize="HC")
    again = load_model(save_model(model, tmp_path / "model.skops"))
    assert again.harmonizer.reference == "HC"
    controls = table.take((table.y == "HC").to_numpy())
    known = SiteHarmonizer().fit(controls.X, sites=controls.sites)
    assert_allclose(again.harmonizer.shift_, known.shift_)
    truth = table.y.groupby(table.subjects).first()
    predictions = predict_subjects(again, table)
    assert np.mean([one.predicted == truth[one.subject] for one in predictions.subjects]) > 0.8
    assert predictions.notes == ()
    elsewhere = FeatureTable(table.X, table.y, table.subjects)
    notes = predict_subjects(again, elsewhere).notes
    assert notes[0] == "no sites are given: all participants count as those of one new site"
    assert "the new site is brought to the location and scale of the others" in notes[1]


def test_one_site_cannot_be_harmonized(cohort_table):
    with pytest.raises(InputError, match=r"at least two.*no column 'site'.*do not harmonize"):
        fit_model(cohort_table, harmonize=True)
    with pytest.raises(InputError, match="harmonize is 'healthy', and the classes are HC, MDD"):
        fit_model(make_hospitals(2), harmonize="healthy")


@pytest.mark.parametrize("parts", [{"imputer": "indicators"}, {"classifier": "ridge"}])
def test_a_tuned_method_learns_sites_in_its_own_folds_and_is_kept(tmp_path, parts):
    table = make_hospitals(3, shift=4.0, effect=2.5)
    table.X.loc[::5, ["E2__f1", "E2__f2", "E2__f3"]] = np.nan
    model = fit_model(
        table, replace(METHODS["ANOVA F"], **parts).pipeline(folds="site"), harmonize=True
    )
    again = load_model(save_model(model, tmp_path / "model.skops"))
    said = predict_subjects(again, table)
    truth = table.y.groupby(table.subjects).first()
    assert np.mean([one.predicted == truth[one.subject] for one in said.subjects]) > 0.8
    assert said.frame.equals(predict_subjects(model, table).frame)
    assert 0 < again.estimator.columns_.size <= table.X.shape[1]


def test_a_table_without_any_channel_has_no_model(cohort_table):
    nothing = FeatureTable(cohort_table.X * np.nan, cohort_table.y, cohort_table.subjects)
    with pytest.raises(InputError, match="no sample has any channel"):
        fit_model(nothing)


def test_a_folder_is_no_name_for_a_model(small_model, tmp_path):
    (tmp_path / "model.skops").mkdir()
    with pytest.raises(InputError, match=r"model\.skops is a folder"):
        save_model(small_model, tmp_path / "model.skops", overwrite=True)


@pytest.mark.parametrize(
    "changes",
    [{"columns": ("E1__f1",)}, {"imputer": None}, {"harmonizer": LogisticRegression()}],
    ids=["columns", "imputer", "harmonizer"],
)
def test_parts_that_do_not_fit_each_other_are_refused(small_model, tmp_path, changes):
    path = save_model(replace(small_model, **changes), tmp_path / "model.skops")
    with pytest.raises(InputError, match=r"model\.skops: the model file is damaged"):
        load_model(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["_coef", "mean_", "scale_"])
def test_arrays_without_numbers_are_refused(small_model, tmp_path, name, value):
    part = small_model.estimator if name == "_coef" else small_model.imputer
    array = getattr(part, name).copy()
    path = save_model(small_model, tmp_path / "model.skops")
    content = members(path)
    copies = [member for member in content if content[member] == saved(array)]
    assert copies
    array[0] = value
    forge(path, content | dict.fromkeys(copies, saved(array)))
    with pytest.raises(InputError, match=r"model\.skops: .*damaged \(.* holds NaN or infinity"):
        load_model(path)


@pytest.mark.filterwarnings("ignore:Channels without information")
@pytest.mark.parametrize("imputer", [None, "neighbours"])
def test_a_model_may_have_constant_features_and_channels_never_seen(tmp_path, imputer):
    table = make_hospitals(3)
    table.X["E1__f1"] = 7.0
    table.X.loc[:, table.X.columns.str.startswith("E2__")] = np.nan
    method = imputer and replace(METHODS["ANOVA F"], imputer=imputer).pipeline()
    model, X = fit_model(table, method), table.X
    again = load_model(save_model(model, tmp_path / "model.skops"))
    expected = model.estimator.predict_proba(X)
    assert np.isfinite(expected).all()
    assert_allclose(again.estimator.predict_proba(X), expected)


@pytest.mark.parametrize("entry", ["columns", "data", "performance", "data: subjects"])
def test_null_in_the_description_is_refused(model_file, entry):
    content = members(model_file)
    about = json.loads(content["idfsmec.json"])
    name, _, key = entry.partition(": ")
    about[name] = about[name] | {key: None} if key else None
    forge(model_file, content | {"idfsmec.json": json.dumps(about)})
    with pytest.raises(InputError, match=rf"model\.skops: the model file is damaged .*{name}"):
        load_model(model_file)


def test_doubled_entries_are_refused(model_file):
    content = members(model_file)
    about = json.loads(content["idfsmec.json"])
    about["columns"][1] = about["columns"][0]
    forge(model_file, content | {"idfsmec.json": json.dumps(about)})
    with pytest.raises(InputError, match=r"model\.skops: .*columns has an entry twice"):
        load_model(model_file)
    rewrite(model_file, content)
    with zipfile.ZipFile(model_file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("idfsmec.json", content["idfsmec.json"])
    with pytest.raises(InputError, match=r"model\.skops: .*two entries of one name"):
        load_model(model_file)


SAVE = """
import sys
from idfsmec.prediction import METHODS, fit_model, save_model
from tests.evaluation.cohorts import make_cohort
for name, method in (("default", None), ("ANOVA F", METHODS["ANOVA F"].pipeline())):
    save_model(fit_model(make_cohort(16, 2, n_channels=3), method), f"{sys.argv[1]}/{name}.skops")
"""


@pytest.fixture(scope="module")
def from_two_processes(tmp_path_factory):
    """Folders with models that processes with different orders of sets have made."""
    folders = [tmp_path_factory.mktemp("models") for _ in range(2)]
    for seed, folder in enumerate(folders):
        paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
        environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": paths}
        subprocess.run([sys.executable, "-c", SAVE, str(folder)], env=environment, check=True)
    return folders


@pytest.mark.parametrize("method", ["default", "ANOVA F"])
def test_equal_models_are_equal_files_also_from_another_process(from_two_processes, method):
    one, other = (folder / f"{method}.skops" for folder in from_two_processes)
    assert one.read_bytes() == other.read_bytes()


def test_what_is_not_defined_is_kept_as_null_and_said(small_model, tmp_path):
    auc = {"mean": np.nan, "low": np.nan, "high": np.nan, "chance": 0.5}
    metrics = {"roc_auc": auc}
    model = replace(small_model, performance={"metrics": metrics, "by_share": [auc]})
    path = save_model(model, tmp_path / "m.skops")
    assert json.loads(members(path)["idfsmec.json"])["performance"]["by_share"][0]["mean"] is None
    again = load_model(path)
    assert np.isnan(again.performance["metrics"]["roc_auc"]["mean"])
    assert metric_rows(again)[0]["value"] == "not defined"


def test_a_clock_before_1980_is_named_before_the_work(monkeypatch, small_model, tmp_path):
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(0))
    with pytest.raises(InputError, match=r"m\.skops: .*dated 1970, before 1980; set the"):
        save_model(small_model, tmp_path / "m.skops")
