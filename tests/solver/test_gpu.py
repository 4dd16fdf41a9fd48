"""The kernels on Triton's interpreter, and on a GPU where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from idfsmec import IDFSMEC
from idfsmec.solver.gpu import covers
from idfsmec.solver.solve import Options, solve_channels
from idfsmec.solver.sums import table_sums
from tests.conftest import make_channels

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
    if "only 0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("the interpreter of Triton 3.6 does not run with NumPy 2.5")
    assert done.stdout.endswith("alike\n"), done.stderr


def test_what_the_kernels_do_not_cover_is_solved_by_numpy_with_one_warning():
    X, y, channels = make_channels()
    assert not covers("cpu", 2, 6)
    here = IDFSMEC(channels).fit(X, y)
    with pytest.warns(UserWarning, match="are solved by NumPy"):
        there = IDFSMEC(channels, device="cpu").fit(X, y)
    assert_allclose(there.scores_, here.scores_)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("n_features", [6, 18, 30])
def test_a_gpu_finds_the_same_objectives(n_features):
    X, y, _ = make_channels(n_features=n_features)
    columns = list(np.arange(X.shape[1]).reshape(-1, n_features))
    folds = (np.arange(len(y)) % 5)[None]
    sums = table_sums(X, columns, y, folds, 2, n_folds=5)
    tables = [sums.moments(split.train) for split in sums.splits()]
    here, there = (
        solve_channels(tables, [0.01, 1.0, 100.0], Options(device=device))
        for device in (None, "cuda")
    )
    apart = np.abs(there.objectives / here.objectives - 1)
    assert np.median(apart) <= 1e-12
    assert (apart <= 1e-9).mean() >= 0.95
