import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from idfsmec.evaluation import Results
from idfsmec.report import write_report
from tests.report.make_results import simulate, write_results

HOSTILE = ("<script>alert(1)</script>", "=1+1", "a & b", '"quoted"', r"$\x$")


@pytest.fixture(autouse=True)
def no_windows():
    """Draw off screen, and leave no figure behind."""
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """All four experiments on one table with eight 10-20 channels."""
    return write_results(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="session")
def results(folder):
    return Results.read(folder)


@pytest.fixture(scope="session")
def page(folder):
    mpl.use("Agg")
    return write_report(folder, overwrite=True)


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    """Names of channels, labels and the table that try to be markup and formulas."""
    mpl.use("Agg")
    table = simulate(
        (*HOSTILE, *(f"E{i}" for i in range(8))), n_features=6, labels=("<b>", r"$\y$")
    )
    folder = write_results(
        tmp_path_factory.mktemp("hostile"),
        {"<img src=x>": table},
        ("accuracy",),
        methods=("mRMR",),
        rates=(0.3,),
        n_splits=2,
    )
    return write_report(folder)
