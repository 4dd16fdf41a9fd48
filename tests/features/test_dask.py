"""Recordings on a real cluster of processes: the same bytes, also when a worker is killed."""

import builtins
import io
import json
import os
import signal
from dataclasses import replace
from functools import partial

import joblib
import pytest
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError, RecordingError
from idfsmec.features import extract_table, extract_to_file
from idfsmec.recordings import read_manifest, simulate_cohort
from tests.test_parallel import look_around, with_load

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


def kill_once(load, flag):
    """Take the whole process down, the first time of all."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return load()


@pytest.mark.long
def test_a_worker_killed_on_the_way_leaves_the_same_bytes(study, tmp_path, cluster):
    found = read_manifest(study)
    extract_to_file(found, tmp_path / "here.parquet")
    flag = str(tmp_path / "deadly")
    deadly = replace(found[2], load=partial(kill_once, found[2].load, flag))
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        workers = set(client.scheduler_info()["workers"])
        done = extract_to_file(
            [*found[:2], deadly, found[3]], tmp_path / "there.parquet", dask=client
        )
        assert set(client.scheduler_info()["workers"]) != workers, "no worker was killed"
    assert [one.status for one in done.outcomes] == ["done"] * 4
    for name in ("here.parquet", "here.parquet.reasons.tsv.gz"):
        other = tmp_path / name.replace("here", "there")
        assert (tmp_path / name).read_bytes() == other.read_bytes()
    assert not list(tmp_path.glob(".*parts"))


def test_what_is_finished_is_not_computed_again_and_damage_is_found(study, tmp_path, cluster):
    found, parts = read_manifest(study), tmp_path / "parts"
    here = extract_table(found[:3], parts=parts)
    damaged = sorted(parts.glob("*.npz"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-100])
    there = extract_table(found, parts=parts, dask=cluster.scheduler_address)
    assert sorted(one.status for one in there.outcomes) == ["done", "done", "resumed", "resumed"]
    assert f"{damaged} was damaged: computed again" in there.summary()
    assert there.table.equals(extract_table(found).table)
    assert len(here.table) < len(there.table)


def test_a_recording_that_fails_is_named_or_skipped_as_on_one_machine(study, cluster):
    found = read_manifest(study)
    found[1].files[0].write_bytes(b"no recording")
    with pytest.raises(RecordingError) as here:
        extract_table(found[1:2])
    with pytest.raises(RecordingError) as there:
        extract_table(found[1:2], dask=cluster.scheduler_address)
    assert str(there.value) == str(here.value)
    skipped = extract_table(found[:2], on_error="skip", dask=cluster.scheduler_address)
    assert skipped.summary() == extract_table(found[:2], on_error="skip").summary()


def test_a_cluster_given_to_joblib_is_used_as_if_it_were_given_to_us(tmp_path, cluster):
    found = simulate_cohort(4, 3, duration=12, detached=0, random_state=0).recordings
    here = extract_table(found).table
    changed = with_load(found, look_around, str(tmp_path / "facts"))
    with distributed.Client(cluster) as client, joblib.parallel_config("dask"):
        assert extract_table(changed).table.equals(here)
        workers = client.run(os.getpid).values()
    facts = json.loads((tmp_path / "facts").read_text())
    assert facts["process"] in workers
    assert set(facts["nested"]) == {facts["process"]}


def hide(name):
    """Have this process not read a file."""
    real = builtins.open

    def refuse(file, *args, **more):
        if str(file) == name:
            raise PermissionError(13, "Permission denied", name)
        return real(file, *args, **more)

    builtins.open = io.open = refuse


def show():
    """Undo it."""
    builtins.open = io.open = builtins.open.__closure__[1].cell_contents


def test_a_worker_that_cannot_read_a_file_is_named_with_the_remedy(study, cluster):
    found = read_manifest(study)
    with distributed.Client(cluster) as client:
        client.run(hide, str(found[0].files[0]))
        try:
            with pytest.raises(InputError, match=r"worker tcp://.* cannot read .*same path"):
                extract_table(found[:1], dask=client, on_error="skip")
        finally:
            client.run(show)


def test_the_command_takes_an_address_and_paths_relative_to_its_own_folder(
    study, tmp_path, cluster, monkeypatch
):
    monkeypatch.chdir(study.parent)
    how = ["features", study.name, "-o"]
    for name, more in (("here", []), ("there", ["--dask", cluster.scheduler_address])):
        said = CliRunner().invoke(app, [*how, str(tmp_path / f"{name}.parquet"), *more])
        assert said.exit_code == 0, said.output
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()
