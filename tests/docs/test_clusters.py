"""What the page of clusters shows runs, as far as one machine can: its scripts and its cluster."""

import os
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from idfsmec.evaluation import Results, accuracy
from tests.evaluation.cohorts import make_cohort

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/clusters.md").read_text("utf-8")
FEW = "--methods random,'ANOVA F' --folds 2 --k 2 --rates 0.3 --repeats 1"
PROTOCOL = {"rates": [0.3], "n_splits": 2, "ks": [2]}
METHODS = ["random", "ANOVA F"]


def block(kind, containing):
    (code,) = [
        code
        for code in re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        if containing in code
    ]
    return code


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="needs bash")
def test_jobs_of_an_array_and_putting_them_together_give_what_one_run_gives(tmp_path):
    table = make_cohort(n_channels=4)
    table.write(tmp_path / "table.parquet")
    commands = f"""
    srun() {{ "$@"; }}
    idfsmec() {{
        if [ "$1" = benchmark ]; then "{sys.executable}" -m idfsmec "$@" {FEW}
        else "{sys.executable}" -m idfsmec "$@"; fi
    }}
    set -e
    """

    def job(code, **variables):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
        return subprocess.run(
            ["bash", "-c", commands + code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stderr

    array = block("sh", "#SBATCH")
    for number in ("1", "2"):
        log = job(
            array,
            TMPDIR=str(tmp_path / f"disk of machine {number}"),
            SLURM_ARRAY_TASK_ID=number,
            SLURM_ARRAY_TASK_COUNT="2",
            SLURM_CPUS_PER_TASK="1",
        )
        assert " INFO tasks in " in log
    job(block("sh", "whole"), TMPDIR=str(tmp_path / "disk of the last"))
    together = Results.read(tmp_path / "results")
    assert (tmp_path / "results" / "report.html").exists()
    alone = accuracy(table, tmp_path / "alone", methods=METHODS, protocol=PROTOCOL)
    pd.testing.assert_frame_equal(together.mean_scores(), alone.mean_scores())


@pytest.mark.long
def test_the_snippet_of_slurm_computes_on_the_cluster_that_it_makes(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    made = []

    def local(**options):
        assert options["cores"] == options["processes"] == 1
        cluster = distributed.LocalCluster(
            n_workers=0, threads_per_worker=1, dashboard_address=None
        )
        made.append(cluster)
        scale = cluster.scale
        monkeypatch.setattr(cluster, "scale", lambda jobs: scale(min(jobs, 1)))
        return cluster

    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=local))
    monkeypatch.chdir(tmp_path)
    table = make_cohort(n_channels=4)
    code = block("python notest", "SLURMCluster").replace("dask=", "protocol=protocol, dask=")
    names = {"table": table, "protocol": PROTOCOL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, names)
        finally:
            with suppress(TimeoutError):
                distributed.Client.current().close()
                made[0].close()
    assert set(names["results"].scores["method"]) == {"IDFS-MEC", "ANOVA F"}


@pytest.mark.long
def test_what_slurm_gets_starts_workers_of_one_thread():
    jobqueue = pytest.importorskip("dask_jobqueue")
    code = block("python notest", "SLURMCluster").split("cluster.scale")[0]
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code.replace("from idfsmec.evaluation import accuracy", ""), names)
        script = names["cluster"].job_script()
        names["cluster"].close()
    assert isinstance(names["cluster"], jobqueue.SLURMCluster)
    assert "--nthreads 1" in script
    assert "#SBATCH -t 12:00:00" in script
