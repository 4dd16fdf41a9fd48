"""Sums by a real cluster of processes: the ranking of one machine, a worker killed or not."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import IDFSMEC, FeatureTable, summarise
from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.summaries import stream
from idfsmec.summaries.on_cluster import together

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    person = np.arange(240) // 6
    X = rng.normal(size=(240, 12)) + 50
    X[:, 0] += 2 * (person % 2)
    X[rng.random(240) < 0.3, 3:6] = np.nan
    names = [f"E{v}__f{j}" for v in range(4) for j in range(3)]
    labels = np.where(person % 2, "MDD", "HC")
    return FeatureTable(pd.DataFrame(X, columns=names), labels, [f"p{one}" for one in person])


@pytest.fixture
def folder(table, tmp_path):
    """Ten files; in two of them are the same people, in two others one class alone."""
    folder = tmp_path / "folder"
    folder.mkdir()
    pieces = np.array_split(np.arange(240), 8)  # people are torn at their ends
    hc, mdd = (pieces[7][table.y[pieces[7]] == label] for label in ("HC", "MDD"))
    for number, rows in enumerate([*pieces[:7], hc, mdd]):
        table.take(rows).write(folder / f"{number}.parquet")
    return folder


def ranked(summary):
    return IDFSMEC().fit_summaries([summary])


def test_a_worker_killed_on_the_way_leaves_the_ranking_of_one_machine(folder, cluster, tmp_path):
    here = summarise(folder, min_people=1)
    flag = str(tmp_path / "deadly")
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        client.run(die_once, flag)
        workers = set(client.scheduler_info()["workers"])
        there = summarise(folder, min_people=1, dask=client)
        assert Path(flag).exists()
        assert set(client.scheduler_info()["workers"]) != workers, "no worker was killed"
    one, other = ranked(here), ranked(there)
    np.testing.assert_allclose(other.scores_, one.scores_, rtol=1e-9)
    assert other.ranking_.tolist() == one.ranking_.tolist()
    assert there.n_tables == 1
    np.testing.assert_array_equal(there.people, here.people)


def die_once(flag):
    """Have the first worker that sums up a file take its whole process down."""
    real = stream._pieces

    def deadly(*args):
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
        return real(*args)

    stream._pieces = deadly


def test_the_command_ranks_a_folder_on_a_cluster(folder, cluster, tmp_path):
    frames = []
    for more in ([], ["--dask", cluster.scheduler_address]):
        output = tmp_path / f"ranking{len(more)}.csv"
        said = CliRunner().invoke(app, ["select", str(folder), "-o", str(output), *more])
        assert said.exit_code == 0, said.output
        frames.append(pd.read_csv(output))
    pd.testing.assert_frame_equal(*frames, check_exact=False, rtol=1e-9)


@pytest.mark.parametrize("sort", [True, False])  # False: most people are in several partitions
def test_a_dask_dataframe_is_summed_up_like_the_table(table, sort, cluster):
    frame = table.X.reset_index(drop=True)
    frame.insert(0, "subject", table.subjects)
    frame.insert(1, "label", table.y)
    if not sort:
        frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    lazy = dd.from_pandas(frame, npartitions=10, sort=False)
    with distributed.Client(cluster):
        there = summarise(lazy, min_people=1)
    here = summarise(table, min_people=1)
    np.testing.assert_allclose(ranked(there).scores_, ranked(here).scores_, rtol=1e-9)
    np.testing.assert_array_equal(there.people, here.people)


def test_what_workers_cannot_do_is_refused(table, folder, cluster):
    address = cluster.scheduler_address
    with pytest.raises(InputError, match="withhold nothing: give min_people=1"):
        summarise(folder, dask=address)
    with pytest.raises(InputError, match="needs no cluster"):
        summarise(table, min_people=1, dask=address)
    (folder / "3.parquet").write_bytes(b"no table")
    with pytest.raises(InputError, match=r"3\.parquet: not a readable.*same path"):
        summarise(folder, min_people=1, dask=address)


def test_nobody_is_in_two_groups_of_pieces():
    rng = np.random.default_rng(0)
    for _ in range(50):
        people = [set(rng.integers(0, 30, rng.integers(0, 4)).astype(str)) for _ in range(12)]
        groups = together(people, size=3)
        assert sorted(at for group in groups for at in group) == list(range(12))
        met = [set().union(*(people[at] for at in group)) for group in groups]
        assert sum(map(len, met)) == len(set().union(*met))
