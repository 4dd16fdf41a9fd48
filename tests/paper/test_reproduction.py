"""The paper's experiments from files in the layout of each release to its tables and a page."""

import functools
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import paper
from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, Results
from idfsmec.paper import published, reproduce
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import Computed

from .releases import WRITERS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_figure_files")]

PROTOCOL = Protocol(rates=[0.3], n_splits=2, ks=[10], svm_costs=[0.1], n_inner_splits=2)
#: The small data set goes through nested tuning, the large ones through the paper's protocol.
AS_THE_PAPER = paper.PAPER.with_changes(rates=[0.3], n_splits=2, ks=[10], svm_costs=[0.1])
PROTOCOLS = {"modma3": PROTOCOL, "modma128": AS_THE_PAPER, "pred-d003": AS_THE_PAPER}
METHODS = ["IDFS-MEC", "mRMR"]
#: Channels of the tables; PRED+CT d003 is read without the mastoids.
CHANNELS = {"modma3": 3, "modma128": 128, "pred-d003": 62}
ABLATIONS = ["IDFS-MEC", "no redundancy", "no channel weights", "no indicator", "no correction"]


@pytest.fixture(scope="module")
def reproduction_of(tmp_path_factory):
    """Run each reproduction once, when it is first asked for: the small one by the command."""

    @functools.cache
    def run(data_set):
        root = WRITERS[data_set](tmp_path_factory.mktemp("release"))
        out = tmp_path_factory.mktemp("out")
        if data_set != "modma3":
            how = {"protocol": PROTOCOLS[data_set], "methods": METHODS}
            return reproduce(data_set, root, out, **how, n_jobs=1)
        command = ["reproduce", data_set, "--data", str(root), "--out", str(out)]
        command += ["--methods", ",".join(METHODS), "--jobs", "1", "--quiet"]
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(paper.PROTOCOLS, "honest", PROTOCOLS[data_set])
            done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        return Results.read(out)

    return run


#: The small one goes all the way in every run of the tests.
LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("modma128", "pred-d003")]


@pytest.fixture(params=["modma3", *LONG])
def reproduced(request, reproduction_of):
    return request.param, reproduction_of(request.param)


def read(results, name):
    return pd.read_csv(results.folder / f"{name}.csv")


def test_all_experiments_are_there_for_all_people_and_channels(reproduced):
    data_set, results = reproduced
    assert len(results.failures) == 0
    assert set(results.scores["experiment"]) == {"accuracy", "ablation", "sensitivity", "cost"}
    table = FeatureTable.read(results.folder / "table.parquet")
    n_people = 12 if data_set == "modma3" else 8
    assert (len(table.channels), table.subjects.nunique()) == (CHANNELS[data_set], n_people)
    assert len(table.features) == 18
    assert table.y.groupby(table.subjects).first().value_counts().tolist() == [n_people // 2] * 2
    assert (results.folder / "recordings.txt").read_text()
    assert results.data_set == data_set


def test_figure_2_has_the_published_mean_beside_ours(reproduced):
    data_set, results = reproduced
    figure = read(results, "fig2").set_index("method")
    assert set(figure.index) == set(METHODS)
    expected = published("accuracy", data_set)["IDFS-MEC"]
    assert figure["published mean"]["IDFS-MEC"] == expected
    assert np.isnan(figure["published mean"]["mRMR"])  # the paper gives a curve only
    ours = results.mean_scores("accuracy")[0.3].droplevel(["table", "pattern"])
    assert figure["30 % missing"].to_dict() == pytest.approx(ours.to_dict())


def test_figure_3_has_the_whole_grid(reproduced):
    grid = read(reproduced[1], "fig3")
    assert len(grid) == 7 * 8
    assert (grid["lam"].nunique(), grid["gamma"].nunique()) == (7, 8)
    assert grid["accuracy"].between(0, 1).all()


def test_table_1_has_the_ablations_beside_the_published_means(reproduced):
    data_set, results = reproduced
    table = read(results, "table1").set_index("method")
    assert list(table.index) == ABLATIONS
    for name in ABLATIONS[:-1]:
        expected = published("ablation", data_set)[name]
        assert table["published mean"][name] == expected > 0.5
    assert np.isnan(table["published mean"]["no correction"])  # ours, not the paper's
    assert (table["mean"] == table["30 % missing"]).all()


def test_table_2_has_seconds_beside_the_published_ones(reproduced):
    data_set, results = reproduced
    table = read(results, "table2").set_index("method")
    assert set(table["n_channels"]) == {CHANNELS[data_set]}
    for name in METHODS:
        expected = published("cost", data_set)[name]
        assert table["published seconds"][name] == expected > 0
    assert (table["seconds"] > 0).all()


@pytest.mark.parametrize("data_set", LONG)
def test_the_folder_becomes_a_report(data_set, reproduction_of):
    results = reproduction_of(data_set)
    made = CliRunner().invoke(app, ["report", str(results.folder)])
    assert made.exit_code == 0, made.output
    page = (results.folder / "report.html").read_text("utf-8")
    assert data_set in page
    assert len(list((results.folder / "figures").iterdir())) > 3


def test_the_command_goes_from_a_release_to_a_page_and_goes_on_from_there(
    reproduction_of, tmp_path, monkeypatch
):
    folder = reproduction_of("modma3").folder
    assert (folder / "report.html").exists()
    monkeypatch.setitem(paper.PROTOCOLS, "honest", PROTOCOL)
    monkeypatch.setattr(
        "idfsmec.paper.find_recordings",
        lambda *a, **k: pytest.fail("read again"),
    )
    computed = Computed()
    how = {"methods": METHODS, "n_resamples": 100, "n_jobs": 1, "progress": computed}
    again = reproduce("modma3", tmp_path / "gone", folder, **how)
    assert computed.events == []
    assert again.resampling["modma3"]["n_resamples"] == 100


def test_an_unknown_data_set_or_protocol_is_refused(tmp_path):
    with pytest.raises(InputError, match="choose from modma3, pred-d003, modma128"):
        reproduce("modma64", tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="choose from honest, paper"):
        reproduce("modma3", tmp_path, tmp_path / "out", protocol="best")


def test_a_number_of_jobs_that_is_none_is_refused_before_any_recording_is_read(tmp_path):
    root = WRITERS["modma3"](tmp_path / "release", n_people=2)
    with pytest.raises(InputError, match="n_jobs=0: give 1 or more"):
        reproduce("modma3", root, tmp_path / "out", n_jobs=0)
    assert not (tmp_path / "out" / "table.parquet").exists()


def test_a_folder_holds_the_reproduction_of_one_data_set(reproduction_of, tmp_path):
    folder = reproduction_of("modma3").folder
    root = WRITERS["modma128"](tmp_path / "release")
    shutil.copy(folder / "store.sqlite", tmp_path)
    shutil.copy(folder / "table.parquet", tmp_path)
    with pytest.raises(InputError, match="holds a reproduction of modma3"):
        reproduce("modma128", root, tmp_path, n_jobs=1)
