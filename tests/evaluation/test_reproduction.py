"""The paper's experiments from files in the layout of the release to its tables."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, published_value, reproduce
from idfsmec.table import FeatureTable

PROTOCOL = Protocol(rates=[0.3], n_splits=2, ks=[10], svm_costs=[0.1], n_inner_splits=2)


@pytest.fixture(scope="module")
def modma3(tmp_path_factory):
    """Sixteen people of 20 s each, as MODMA writes them: three columns of raw counts."""
    root = tmp_path_factory.mktemp("modma") / "EEG_3channels_resting_lanzhou_2015"
    root.mkdir()
    rng = np.random.default_rng(0)
    time = np.arange(5000) / 250
    for person in range(16):
        group = "0201" if person % 2 else "0202"
        alpha = (30 + 20 * (person % 2)) * np.sin(2 * np.pi * 10 * time)
        counts = 1_500_000 + 20 * rng.normal(size=(5000, 3)).cumsum(axis=0) * 0.2
        counts += 8 * (alpha[:, None] + 20 * rng.normal(size=(5000, 3)))
        path = root / f"{group}{person:04d}_still.txt"
        np.savetxt(path, counts.round().astype(int), fmt="%d", delimiter=" ")
    return root.parent


@pytest.fixture(scope="module")
def reproduced(modma3, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    methods = ["IDFS-MEC", "mRMR"]
    return reproduce(
        "modma3", modma3, out, protocol=PROTOCOL, methods=methods, n_jobs=1, progress=False
    )


def test_all_experiments_are_there(reproduced):
    assert len(reproduced.failures) == 0
    assert set(reproduced.scores["experiment"]) == {"accuracy", "ablation", "sensitivity", "cost"}
    table = FeatureTable.read(reproduced.folder / "table.parquet")
    assert (len(table.channels), table.subjects.nunique()) == (3, 16)
    assert (reproduced.folder / "recordings.txt").read_text()


def test_table_1_has_the_ablations_beside_the_published_means(reproduced):
    table = pd.read_csv(reproduced.folder / "table1.csv").set_index("method")
    assert list(table.index) == [
        "IDFS-MEC",
        "no redundancy",
        "no channel weights",
        "no indicator",
        "no correction",
    ]
    assert table["published mean"]["no redundancy"] == published_value(
        "ablation", "no redundancy", 3
    )
    ours = table.loc["IDFS-MEC"]
    assert ours["mean"] == ours["30 % missing"]


def test_table_2_has_seconds_beside_the_published_ones(reproduced):
    table = pd.read_csv(reproduced.folder / "table2.csv").set_index("method")
    assert table["published seconds"]["mRMR"] == 0.008
    assert (table["seconds"] > 0).all()
    assert set(table["n_channels"]) == {3}


def test_figures_2_and_3_have_their_numbers(reproduced):
    figure = pd.read_csv(reproduced.folder / "fig2.csv")
    assert set(figure["method"]) == {"IDFS-MEC", "mRMR"}
    grid = pd.read_csv(reproduced.folder / "fig3.csv")
    assert len(grid) == 7 * 8
    assert grid["accuracy"].between(0, 1).all()


def test_an_unknown_data_set_or_protocol_is_refused(tmp_path):
    with pytest.raises(InputError, match="choose from modma3, modma128, pred-d003"):
        reproduce("modma64", tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="choose from honest, paper"):
        reproduce("modma3", tmp_path, tmp_path / "out", protocol="best")
