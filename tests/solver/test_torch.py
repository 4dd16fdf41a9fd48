"""The same solver on PyTorch tensors; on the CPU here, on a GPU where there is one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec import IDFSMEC, idfs_path
from idfsmec.solver import ChannelProblems, solve
from tests.conftest import make_channels

from .problems import make_problems

torch = pytest.importorskip("torch", reason="PyTorch is optional (extra gpu)")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("d", "c"), [(7, 2), (9, 3), (2, 4)])
def test_tensors_and_arrays_end_alike(device, lam, d, c):
    problems, _, _ = make_problems(b=8, d=d, c=c, lam=lam)
    tensors = ChannelProblems(
        *(torch.as_tensor(part, device=device) for part in vars(problems).values())
    )
    here, there = solve(problems), solve(tensors)
    assert isinstance(there.theta, torch.Tensor)
    assert_allclose(there.objective.cpu(), here.objective, rtol=1e-8)
    assert_allclose(there.theta.cpu(), here.theta, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_selector_on_a_device_ranks_as_without(device):
    X, y, channels = make_channels()
    here = IDFSMEC(channels).fit(X, y)
    there = IDFSMEC(channels, device=device).fit(X, y)
    assert_allclose(there.scores_, here.scores_, atol=1e-6)
    assert_array_equal(there.ranking_, here.ranking_)
    assert_allclose(there.objective_history_[-1], here.objective_history_[-1])


@pytest.mark.parametrize("device", DEVICES)
def test_a_path_on_a_device_equals_one_without(device):
    X, y, channels = make_channels(n_classes=3)
    here = idfs_path(X, y, channels=channels)
    there = idfs_path(X, y, channels=channels, device=device)
    assert_allclose(there.scores, here.scores, atol=1e-5)
    assert np.isfinite(there.kkt_residuals).all()
