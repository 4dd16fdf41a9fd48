import os
import shutil

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from idfsmec.evaluation import Results
from idfsmec.report import write_report
from tests.conftest import leave_figure_files_empty
from tests.report.make_results import simulate, write_results

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--window-size=1200,900")  # fmt: skip
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
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_figure_files_empty(monkeypatch)
        return write_report(folder)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A browser without windows; ``downloads`` is where files arrive."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not (program and driver):
        pytest.skip("no browser: install chromium and chromium-driver to test pages in one")
    home = tmp_path_factory.mktemp("browser")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={home / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    preferences = {
        "download.default_directory": str(home),
        "download.prompt_for_download": False,
        # Scripts click here, and a browser allows them one file only.
        "profile.default_content_setting_values.automatic_downloads": 1,
    }
    options.add_experimental_option("prefs", preferences)
    service = webdriver.ChromeService(driver, log_output=os.devnull)
    started = webdriver.Chrome(options=options, service=service)
    started.downloads = home
    yield started
    started.quit()
