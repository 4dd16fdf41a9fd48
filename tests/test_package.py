"""The package as a user imports it: names are there, and what they need is imported with them."""

import pickle
import subprocess
import sys

import pytest

import idfsmec
from idfsmec import IDFSMEC


@pytest.mark.parametrize("name", idfsmec.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(idfsmec, name) is not None
    assert name in dir(idfsmec)


def test_importing_the_package_imports_no_room():
    program = "import sys, idfsmec; print(*(m for m in sys.modules if m.startswith('idfsmec.')))"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == []


def test_estimators_can_be_pickled():
    assert pickle.loads(pickle.dumps(IDFSMEC(lam=3.0))).lam == 3.0


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = idfsmec.nonsense


@pytest.mark.slow
def test_selection_does_not_wait_for_mne():
    program = "import sys, idfsmec.selection as s; s.IDFSMEC; sys.exit('mne' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
