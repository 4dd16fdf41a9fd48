"""From a table to a model to a subject, by commands alone."""

import time
import zipfile

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import cli
from idfsmec.cli import app
from idfsmec.features import extract_table
from idfsmec.prediction import load_model
from idfsmec.recordings import simulate_cohort
from idfsmec.table import FeatureTable
from tests.conftest import write
from tests.evaluation.cohorts import make_cohort, make_hospitals

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(folder):
    table = make_cohort(n_subjects=16, effect=3.0).write(folder / "clinic.parquet")
    cli.train(table, folder / "model.skops", folds=2, repeats=1)
    return folder / "model.skops"


@pytest.fixture
def newcomers(tmp_path):
    return make_cohort(n_subjects=6, effect=3.0, seed=1).write(tmp_path / "new.csv")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(line, *words):
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert line in result.stderr


def test_train_writes_a_model_and_its_card(folder, model):
    assert load_model(model).performance["metrics"]["roc_auc"]["mean"] > 0.8
    for text in ((folder / "model.md").read_text(), (folder / "model.html").read_text()):
        for part in ("no diagnosis", "SHA-256", "balanced accuracy", "HC: 8, MDD: 8"):
            assert part in text


def test_predict_names_participants_that_were_trained_on(folder, model, tmp_path):
    result = run("predict", model, folder / "clinic.parquet", "-o", tmp_path / "p.csv")
    assert "warning: s00, s01, s02, s03, s04 and 11 more: in the training data" in result.stderr
    assert pd.read_csv(tmp_path / "p.csv")["warnings"].str.startswith("in the training").all()


def test_a_model_that_remembers_participants_says_so_on_its_card(model, tmp_path):
    table, path = model.with_name("clinic.parquet"), tmp_path / "m.skops"
    cli.train(table, path, folds=2, repeats=1, remember_participants=True)
    assert "can test whether the model was trained on them" in path.with_suffix(".md").read_text()


def test_predict_writes_a_table_and_pages(model, newcomers, tmp_path):
    words = ["predict", model, newcomers, "-o", tmp_path / "p.csv", "--pages", tmp_path / "pages"]
    result = run(*words)
    assert result.exit_code == 0, result.output
    frame = pd.read_csv(tmp_path / "p.csv")
    assert frame["subject"].tolist() == [f"s0{i}" for i in range(6)]
    assert frame["predicted"].isin(["HC", "MDD"]).all()
    assert frame["probability of MDD"].between(0, 1).all()
    pages = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert pages == [f"s0{i}.html" for i in range(6)]
    assert "no diagnosis" in (tmp_path / "pages" / "s00.html").read_text()


def test_predict_points_to_validate_where_a_table_has_labels(model, newcomers, tmp_path):
    line = f"to measure the model: idfsmec validate {model} "
    said = run("predict", model, newcomers, "-o", tmp_path / "p.csv").stderr
    assert line in " ".join(said.split())
    table = FeatureTable.read(newcomers)
    unknown = FeatureTable(table.X, np.repeat("?", len(table)), table.subjects)
    path = unknown.write(tmp_path / "unknown.parquet")
    said = run("predict", model, path, "-o", tmp_path / "q.csv").stderr
    assert line not in " ".join(said.split())


def test_a_small_cap_gets_its_answer_and_its_warning(model, newcomers, tmp_path):
    small = FeatureTable.read(newcomers).select_channels(["E1"]).write(tmp_path / "small.csv")
    result = run("predict", model, small, "-o", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert "note: channels of the model that are missing: E2, E3 and E4" in result.stderr
    frame = pd.read_csv(tmp_path / "p.csv")
    assert np.allclose(frame["channels present"], 0.25)
    assert frame["warnings"].str.contains("only 25% of the model's channels").all()


def test_any_method_can_be_trained(folder, model, newcomers, tmp_path):
    train = ["train", folder / "clinic.parquet", "-o", tmp_path / "m.skops", "--method"]
    result = run(*train, "ANOVA F", "--folds", 2, "--repeats", 1)
    assert result.exit_code == 0, result.output
    frame = cli.predict(tmp_path / "m.skops", [newcomers], tmp_path / "p.csv")
    assert frame["strongest channels"].str.contains("E1").all()
    train.insert(1, "--force")
    refused(
        "there is no method 'mRMS', did you mean 'MRMSR'? Choose from IDFS-MEC", *train, "mRMS"
    )


def test_what_does_not_fit_a_model_is_one_line(model, newcomers, tmp_path):
    table, out = FeatureTable.read(newcomers), ["-o", tmp_path / "p.csv"]
    X = table.X.set_axis([f"X{i}__f1" for i in range(table.X.shape[1])], axis=1)
    path = FeatureTable(X, table.y, table.subjects).write(tmp_path / "other.csv")
    line = "other.csv: There is no common channel: the model has E1, E2, E3 and E4"
    refused(line, "predict", model, path, *out)
    broken = tmp_path / "broken.skops"
    broken.write_bytes(model.read_bytes()[:-50])
    refused("broken.skops: this is no model file", "predict", broken, newcomers, *out)
    assert not (tmp_path / "p.csv").exists()


def test_names_of_subjects_are_only_text(model, newcomers, tmp_path):
    table = FeatureTable.read(newcomers).take([0, 1])
    nasty = ["=1+1", "<script>alert(1)</script>"]
    path = FeatureTable(table.X, table.y, nasty).write(tmp_path / "nasty.csv")
    cli.predict(model, [path], tmp_path / "p.csv", pages=tmp_path / "pages")
    assert pd.read_csv(tmp_path / "p.csv")["subject"][0] == "'=1+1"
    pages = [path.read_text() for path in (tmp_path / "pages").iterdir()]
    assert len(pages) == 2
    assert not any("<script>alert" in page for page in pages)


def test_recordings_of_several_formats(tmp_path, raws):
    cohort = simulate_cohort(8, 19, duration=20, detached=0, random_state=0)
    extract_table(cohort.recordings).table.write(tmp_path / "table.parquet")
    cli.train(tmp_path / "table.parquet", tmp_path / "model.skops", folds=2, repeats=1)
    files = [tmp_path / name for name in ("s01.edf", "s02_raw.fif", "s03.vhdr")]
    for file in files:
        write(raws[file.name].copy(), file)
    frame = cli.predict(tmp_path / "model.skops", files, tmp_path / "p.csv")
    assert frame["subject"].tolist() == ["s01", "s02_raw", "s03"]
    assert frame["epochs"].tolist() == [4, 3, 2]
    (tmp_path / "torn.edf").write_bytes((tmp_path / "s01.edf").read_bytes()[:300])
    both = ("predict", tmp_path / "model.skops", tmp_path / "torn.edf", files[0])
    assert run(*both, "-o", tmp_path / "r.csv").exit_code == 2
    skipped = run(*both, "-o", tmp_path / "r.csv", "--on-error", "skip")
    assert skipped.exit_code == 0, skipped.output
    assert "torn.edf: no prediction" in skipped.stderr
    assert pd.read_csv(tmp_path / "r.csv")["subject"].tolist() == ["s01"]
    absent = ("predict", tmp_path / "model.skops", "absent.edf", "-o", tmp_path / "q.csv")
    refused("absent.edf: there is no such file", *absent)
    microvolts = raws["s02_raw.fif"].copy().load_data().apply_function(lambda signal: 1e6 * signal)
    write(microvolts, tmp_path / "wrong_raw.fif")
    wrong = ("predict", tmp_path / "model.skops", tmp_path / "wrong_raw.fif")
    result = run(*wrong, "-o", tmp_path / "q.csv")
    assert result.exit_code == 2
    assert "microvolts that were read as volts" in result.stderr


def test_sites_are_left_out_harmonized_and_known_to_the_model(tmp_path):
    wards = make_hospitals(3, shift=4.0, effect=3.0)
    table, model = wards.write(tmp_path / "wards.parquet"), tmp_path / "model.skops"
    result = run("train", table, "-o", model, "--folds", "site", "--harmonize", "all")
    assert result.exit_code == 0, result.output + result.stderr
    assert "Lund" in (tmp_path / "model.md").read_text()
    assert load_model(model).performance["metrics"]["roc_auc"]["mean"] > 0.8
    new = FeatureTable(wards.X + 9, wards.y, wards.subjects)
    result = run("predict", model, new.write(tmp_path / "new.csv"), "-o", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output + result.stderr


@pytest.mark.parametrize("option", [["--folds", "site"], ["--harmonize", "all"]])
def test_a_table_without_sites_says_what_to_do(folder, model, tmp_path, option):
    result = run("train", folder / "clinic.parquet", "-o", tmp_path / "m.skops", *option)
    assert result.exit_code == 2
    assert "clinic.parquet: " in result.stderr
    assert "column 'site'" in result.stderr
    assert not (tmp_path / "m.skops").exists()


def test_more_folds_than_participants_of_a_class_are_refused(folder, model, tmp_path):
    table = folder / "clinic.parquet"
    most = FeatureTable.read(table).by_subject().y.value_counts().min()
    line = f"300 folds by participant are not possible: the smallest class has {most} participants"
    refused(line, "train", table, "-o", tmp_path / "m.skops", "--folds", 300)
    assert most == 8
    assert list(tmp_path.iterdir()) == []


def test_a_model_and_a_ranking_of_few_electrodes_use_the_same_ones(tmp_path):
    table = make_cohort(n_channels=5).write(tmp_path / "clinic.parquet")
    model = tmp_path / "model.skops"
    done = run("train", table, "-o", model, "--electrodes", 2, "--folds", 2, "--repeats", 1)
    assert done.exit_code == 0, done.output + done.stderr
    assert "electrodes: E" in done.output
    kept = set(load_model(model).channels)
    ranking = tmp_path / "ranking.csv"
    done = run("select", table, "-o", ranking, "--electrodes", 2)
    assert done.exit_code == 0, done.output + done.stderr
    assert set(pd.read_csv(ranking)["channel"]) == kept == {"E1", "E2"}
    refused = run("select", table, "-o", tmp_path / "b.csv", "--electrodes", 9)
    assert refused.exit_code == 2
    assert "9 electrodes cannot be chosen: the table has 5" in refused.stderr


def test_participants_far_outside_get_no_probability_unless_allowed(model, newcomers, tmp_path):
    table = FeatureTable.read(newcomers)
    wild = FeatureTable(table.X.assign(E3__f1=1e300), table.y, table.subjects)
    path, out = wild.write(tmp_path / "wild.csv"), tmp_path / "p.csv"
    result = run("predict", model, path, "-o", out)
    assert result.exit_code == 0, result.output
    assert "no prediction without --allow-unusual" in result.stderr.replace("\n", " ")
    assert pd.read_csv(out)["probability of MDD"].isna().all()
    result = run("predict", model, path, "-o", out, "--allow-unusual", "--force")
    assert result.exit_code == 0, result.output
    assert pd.read_csv(out)["probability of MDD"].notna().all()


def test_train_refuses_a_clock_before_1980_and_a_prevalence_that_is_none(
    folder, model, tmp_path, monkeypatch
):
    train = ["train", folder / "clinic.parquet", "-o", tmp_path / "m.skops"]
    result = run(*train, "--prevalence", 10)
    assert result.exit_code == 2
    assert "prevalence is 10.0: give a share above 0 and below 1" in result.stderr
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(0))
    refused("m.skops: a model file cannot be dated 1970, before 1980", *train)


def test_a_changed_model_is_refused_by_name(model, newcomers, tmp_path):
    broken = tmp_path / "broken.skops"
    broken.write_bytes(model.read_bytes())
    with zipfile.ZipFile(broken, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("schema.json", "{}")
    out = ["-o", tmp_path / "p.csv"]
    refused("broken.skops: the model file has two entries", "predict", broken, newcomers, *out)


def test_a_channel_that_lacks_a_feature_is_noted(model, newcomers, tmp_path):
    table = FeatureTable.read(newcomers)
    lacking = FeatureTable(table.X.drop(columns="E2__f2"), table.y, table.subjects)
    result = run("predict", model, lacking.write(tmp_path / "less.csv"), "-o", tmp_path / "p.csv")
    assert "whose channels count as missing: E2__f2" in result.stderr.replace("\n", " ")
