"""Hospitals write summaries; whoever has them ranks as if the rows were there."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import IDFSMEC, IDFSMECCV, FeatureTable, summarise
from idfsmec.cli import app
from tests.summaries.test_summaries import by_person, cohort

pytestmark = pytest.mark.filterwarnings("ignore:Missing channels are associated with the label")
runner = CliRunner()


def run(*words):
    return runner.invoke(app, [str(word) for word in words])


@pytest.fixture
def hospitals(tmp_path):
    """Tables of three hospitals, and the table of all."""
    table = cohort(120, missing=0.1)
    site = {name: min(at // 30, 2) for at, name in enumerate(table.subjects.unique())}
    paths = []
    for name, own in zip("abc", by_person(table, site), strict=True):
        paths.append(own.write(tmp_path / f"{name}.parquet"))
    return table, paths


def test_summaries_and_tables_give_the_ranking_of_all_rows(hospitals, tmp_path):
    table, (a, b, c) = hospitals
    for path in (a, b):
        done = run("summarise", path, "-o", path.with_suffix(".summary"), "--min-people", 1)
        assert done.exit_code == 0, done.output
    out = tmp_path / "ranking.csv"
    mixed = [a.with_suffix(".summary"), b.with_suffix(".summary"), c]
    done = run("select", *mixed, "-o", out, "--k", 5)
    assert done.exit_code == 0, done.output
    assert "60 HC, 60 MDD of 3 tables" in " ".join(done.output.split())
    wanted = IDFSMEC(n_features_to_select=5)
    wanted.fit(table.X, table.y, table.subjects)
    found = pd.read_csv(out)
    names = (found["channel"] + "__" + found["feature"]).tolist()
    assert names == table.X.columns[wanted.ranking_.argsort()].tolist()
    assert found["score"].to_numpy() == pytest.approx(sorted(wanted.scores_)[::-1], abs=1e-9)


def test_lam_is_chosen_from_summaries_and_the_rest_is_said_not_to_be(hospitals, tmp_path):
    table, paths = hospitals
    for path in paths:
        run("summarise", path, "-o", path.with_suffix(".summary"), "--min-people", 1)
    out = tmp_path / "ranking.csv"
    done = run("select", *(path.with_suffix(".summary") for path in paths), "-o", out, "--tune")
    assert done.exit_code == 0, done.output
    wanted = IDFSMECCV().fit_summaries([summarise(table, min_people=1)])
    said = " ".join(done.output.split())
    assert f"people held out chose lam = {wanted.best_params_['lam']}. It cannot judge" in said
    assert "gamma = 2.0 and the number of features, 10: these were not tuned." in said
    found = pd.read_csv(out)
    assert found["score"].to_numpy() == pytest.approx(sorted(wanted.scores_)[::-1], abs=1e-9)


def test_a_folder_of_files_is_one_table(hospitals, tmp_path):
    _, paths = hospitals
    for number, path in enumerate(paths):
        folder = tmp_path / "data" / f"part{number}"
        folder.mkdir(parents=True)
        path.rename(folder / "x.parquet")
    rankings = []
    FeatureTable.concat(
        [FeatureTable.read(one) for one in sorted((tmp_path / "data").rglob("*.parquet"))]
    ).write(tmp_path / "all.parquet")
    for words in ([tmp_path / "data"], [tmp_path / "all.parquet"]):
        done = run("select", *words, "-o", tmp_path / "r.csv", "--force")
        assert done.exit_code == 0, done.output
        rankings.append(pd.read_csv(tmp_path / "r.csv"))
    by_sums, by_rows = rankings
    pd.testing.assert_frame_equal(by_sums, by_rows[list(by_sums)], rtol=0, atol=1e-9)


def test_what_is_in_a_summary_is_said_in_words(hospitals, tmp_path):
    _, (a, *_) = hospitals
    out = tmp_path / "a.summary"
    done = run("summarise", a, "-o", out, "--describe")
    assert done.exit_code == 0, done.output
    for said in (
        "Class HC: 15 people, 45 samples, of which 45 have any channel.",
        "fewer than 10 people",
        "Not in it: names",
    ):
        assert said in done.output
    assert run("summarise", out, "--describe").output in done.output
    assert run("summarise", out).exit_code == 2
    again = run("summarise", a, "-o", out)
    assert again.exit_code == 2
    assert "--force" in again.stderr


def test_summaries_say_how_often_halves_select_a_feature(hospitals, tmp_path):
    _, tables = hospitals
    shared = []
    for path in tables:
        shared.append(tmp_path / f"{path.stem}.summary")
        run("summarise", path, "-o", shared[-1], "--min-people", 1)
    done = run("select", *shared, "-o", tmp_path / "r.csv", "--resamples", 100)
    assert done.exit_code == 0, done.output
    assert "on each of 12 halves" in " ".join(done.output.split())
    ranking = pd.read_csv(tmp_path / "r.csv")
    assert ranking["frequency"].between(0, 1).all()
    assert ranking["frequency"].iloc[0] > ranking["frequency"].iloc[-1]


def test_what_cannot_be_is_refused_in_one_line(hospitals, tmp_path):
    _, (a, b, _) = hospitals
    for path, name in ((a, "a"), (b, "b")):
        read = FeatureTable.read(path)
        other = FeatureTable(read.X, read.y, read.subjects, {"sfreq": 100.0 * (1 + (name == "b"))})
        other.write(path)
        run("summarise", path, "-o", tmp_path / f"{name}.summary")
    refused = run("select", tmp_path / "a.summary", tmp_path / "b.summary")
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert "different settings: sfreq is 200.0 in the one and 100.0 in the other" in said
    by_site = run("select", tmp_path / "a.summary", "--tune", "--folds", "site")
    assert "needs the rows" in by_site.stderr
    assert run("select", tmp_path / "a.summary", "--tune", "--harmonize").exit_code == 2
    assert run("summarise", a, "-o", tmp_path / "x.npz").exit_code == 2
    assert run("summarise", a, "-o", tmp_path / "x.summary", "--folds", 3).exit_code == 2
    (tmp_path / "empty").mkdir()
    assert "no .parquet file" in run("select", tmp_path / "empty").stderr


def test_a_folder_whose_files_differ_is_refused(hospitals, tmp_path):
    _, (a, b, _) = hospitals
    FeatureTable.read(b).select_channels(["F3"]).write(b)
    (tmp_path / "data").mkdir()
    for path in (a, b):
        path.rename(tmp_path / "data" / path.name)
    refused = run("select", tmp_path / "data")
    assert refused.exit_code == 2
    assert "b.parquet: has other columns than a.parquet" in " ".join(refused.stderr.split())


def test_products_between_channels_are_told_if_asked_for(tmp_path):
    a = cohort(80, missing=0.1).write(tmp_path / "a.parquet")
    out = tmp_path / "a.summary"
    how = ("--between-channels", "--folds", 1, "--min-people", 5)
    done = run("summarise", a, "-o", out, *how)
    assert done.exit_code == 0, done.output
    assert "warning: Withheld: products between channels" in done.stderr
    assert "Exactly " in run("summarise", out, "--describe").output
    folder = run("summarise", tmp_path, "-o", tmp_path / "b.summary", *how)
    assert folder.exit_code == 2
    assert "whole table in memory" in folder.stderr
