"""The kernels on Triton's interpreter, and on a GPU where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from idfsmec.solver import ChannelProblems, Options, fold_moments, solve_channels
from idfsmec.solver.gpu import suits
from tests.conftest import make_channels

from .problems import make_problems

torch = pytest.importorskip("torch", reason="PyTorch is optional (extra gpu)")
pytest.importorskip("triton", reason="Triton comes with PyTorch for GPUs")


@pytest.mark.slow
def test_the_kernels_do_what_numpy_does():
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": os.pathsep.join(map(str, (root / "src", root))),
    }
    command = [sys.executable, "-m", "tests.solver.interpreted"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("alike\n"), done.stderr


def test_the_kernels_are_for_gpus_only():
    problems = make_problems(b=2, d=6)[0]
    tensors = ChannelProblems(*(torch.as_tensor(part) for part in vars(problems).values()))
    assert not suits(problems)
    assert not suits(tensors)


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
@pytest.mark.parametrize("n_features", [6, 18, 30])
def test_a_device_finds_the_same_objectives(device, n_features):
    X, y, _ = make_channels(n_features=n_features)
    columns = list(np.arange(X.shape[1]).reshape(-1, n_features))
    tables = fold_moments(X, y, 2, columns, np.array_split(np.arange(len(y)), 5))
    here, there = (
        solve_channels(tables, [0.01, 1.0, 100.0], Options(device=where))
        for where in (None, device)
    )
    apart = np.abs(there.objectives / here.objectives - 1)
    assert np.median(apart) <= 1e-12
    assert (apart <= 1e-9).mean() >= 0.95
