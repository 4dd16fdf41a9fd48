import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import IDFSMEC, StabilitySelector, cli
from idfsmec.cli import app
from idfsmec.table import FeatureTable
from tests.conftest import make_channels
from tests.evaluation.cohorts import make_hospitals

runner = CliRunner()


@pytest.fixture
def table(tmp_path):
    X, y, channels = make_channels()
    columns = [f"{channel}__f{j % 5}" for j, channel in enumerate(channels)]
    made = FeatureTable(
        X=pd.DataFrame(X, columns=columns),
        y=pd.Series(np.where(y == 1, "MDD", "HC")),
        subjects=pd.Series([f"s{i // 4}" for i in range(len(y))]),
        info={},
    )
    made.write(tmp_path / "table.parquet")
    return made, tmp_path / "table.parquet"


def test_the_ranking_is_that_of_the_selector(table, tmp_path):
    made, path = table
    result = runner.invoke(app, ["select", str(path), "-o", str(tmp_path / "r.csv"), "--k", "3"])
    assert result.exit_code == 0, result.output
    ranking = pd.read_csv(tmp_path / "r.csv")
    selector = IDFSMEC(n_features_to_select=3).fit(made.X, made.y)
    best = made.X.columns[np.argsort(selector.ranking_)]
    assert (ranking["channel"] + "__" + ranking["feature"]).tolist() == best.tolist()
    assert ranking["selected"].sum() == 3
    assert "Heaviest 4 of 4 channels" in result.output


def test_tuning_says_what_was_chosen(table, tmp_path):
    _, path = table
    made = FeatureTable.read(path)
    labels = np.where(np.arange(120) // 4 % 2 == 1, "MDD", "HC")
    FeatureTable(made.X, pd.Series(labels), made.subjects, {}).write(path)
    result = runner.invoke(
        app, ["select", str(path), "-o", str(tmp_path / "r.csv"), "--tune", "--k", "4"]
    )
    assert result.exit_code == 0, result.output
    assert "n_features_to_select = 4" in " ".join(result.output.split())


def test_an_existing_ranking_is_kept_unless_forced(table, tmp_path):
    _, path = table
    out = tmp_path / "r.csv"
    out.write_text("mine")
    refused = runner.invoke(app, ["select", str(path), "-o", str(out)])
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert out.read_text() == "mine"
    assert runner.invoke(app, ["select", str(path), "-o", str(out), "--force"]).exit_code == 0


def test_channels_that_carry_nothing_are_said(table, tmp_path):
    made, path = table
    X = made.X.copy()
    X.iloc[:, :5] = np.nan
    FeatureTable(X, made.y, made.subjects, {}).write(path)
    result = runner.invoke(app, ["select", str(path), "-o", str(tmp_path / "r.csv")])
    assert result.exit_code == 0
    assert "E1 (never observed)" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.parquet"], "nowhere.parquet"),
        (["{table}", "--k", "0"], "--k must be at least 1"),
        (["{table}", "--gamma", "1"], "--gamma 1.0: give a float"),
    ],
)
def test_bad_input_ends_with_exit_code_2(table, tmp_path, arguments, message):
    _, path = table
    given = [argument.format(table=path) for argument in arguments]
    result = runner.invoke(app, ["select", *given, "-o", str(tmp_path / "r.csv")])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "r.csv").exists()


def test_halves_of_the_subjects_say_how_stable_each_feature_is(table, tmp_path):
    made, path = table
    labels = np.where(np.arange(120) // 4 % 2 == 1, "MDD", "HC")
    made = FeatureTable(made.X, pd.Series(labels), made.subjects, {})
    made.write(path)
    arguments = ["select", str(path), "-o", str(tmp_path / "r.csv"), "--lam", "0.1"]
    result = runner.invoke(app, [*arguments, "--resamples", "20", "--seed", "3"])
    assert result.exit_code == 0, result.output
    ranking = pd.read_csv(tmp_path / "r.csv")
    own = StabilitySelector(IDFSMEC(lam=0.1), n_resamples=20, random_state=3)
    own.fit(made.X, made.y, groups=made.subjects)
    expected = dict(zip(made.X.columns, own.frequencies_, strict=True))
    names = ranking["channel"] + "__" + ranking["feature"]
    assert ranking["frequency"].tolist() == pytest.approx([expected[name] for name in names])
    assert ranking["stable"].sum() == own.support_.sum()
    said = " ".join(result.output.split())
    assert f"Stability {own.stability_.value:.2f}" in said
    assert f"at least {100 * own.threshold_:.0f} %" in said


def test_hospitals_are_made_alike_from_rows(tmp_path):
    wards = make_hospitals(3, shift=4.0, effect=3.0)
    table = wards.write(tmp_path / "wards.parquet")
    rows = cli.select(table, tmp_path / "rows.csv", harmonize=True)
    assert set(rows["feature"].head(2)) == {"f1"}


def test_tuning_leaves_out_hospitals(tmp_path):
    table = make_hospitals(3, effect=3.0).write(tmp_path / "wards.parquet")
    found = cli.select(table, tmp_path / "r.csv", k=2, tune=True, folds="site")
    assert set(found["channel"].head(2)) == {"E1", "E2"}
    both = ["select", str(table), "-o", str(tmp_path / "s.csv"), "--tune", "--harmonize"]
    refused = runner.invoke(app, both)
    assert refused.exit_code == 2
    assert "idfsmec benchmark" in refused.stderr
