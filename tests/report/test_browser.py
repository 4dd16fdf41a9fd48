"""The page in a real browser: nothing complains, everything that can be clicked works."""

import csv
import os
import shutil
import time

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER),
        reason="no browser: install chromium and chromium-driver to test the page in one",
    ),
]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--window-size=1200,900")  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    home = tmp_path_factory.mktemp("browser")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={home / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(home), "download.prompt_for_download": False}
    )
    service = webdriver.ChromeService(DRIVER, log_output=os.devnull)
    driver = webdriver.Chrome(options=options, service=service)
    driver.downloads = home
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, page):
    browser.get(page.as_uri())
    return browser


def column(driver, number, table=0):
    """Texts of a column of the ranked table, as shown."""
    return driver.execute_script(
        "return [...document.querySelectorAll('.ranked')[arguments[0]]"
        ".querySelectorAll('tbody tr')].map(row => row.cells[arguments[1]].textContent)",
        table,
        number,
    )


def headings(driver):
    """What stands over the columns of the first ranked table."""
    return driver.execute_script(
        "return [...document.querySelectorAll('.ranked')[0].querySelectorAll('th')]"
        ".map(head => head.textContent.trim())"
    )


def click(driver, selector, number=0):
    driver.execute_script(
        "document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, number
    )


def search(driver, text):
    driver.execute_script(
        "const box = document.querySelector('.ranked input'); box.value = arguments[0];"
        "box.dispatchEvent(new Event('input'))",
        text,
    )


def download(driver):
    """Click the button and read the file that arrives."""
    before = set(driver.downloads.glob("*.csv"))
    click(driver, ".download")
    until = time.monotonic() + 120
    while time.monotonic() < until:
        new = set(driver.downloads.glob("*.csv")) - before
        under_way = any(driver.downloads.glob("*.crdownload"))
        # The browser makes an empty file first, writes to another one and renames that.
        if new and not under_way and all(path.stat().st_size for path in new):
            with new.pop().open(encoding="utf-8", newline="") as file:
                return list(csv.reader(file))
        driver.execute_async_script("setTimeout(arguments[0], 50)")
    pytest.fail("no file was downloaded")


def test_nothing_complains_and_nothing_is_fetched(browser, page):
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []
    sent = [entry["message"] for entry in browser.get_log("performance")]
    asked = [m for m in sent if '"Network.requestWillBeSent"' in m and '"url":"http' in m]
    assert asked == []


def test_the_policy_forbids_the_network(opened):
    refused = opened.execute_async_script(
        "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done('sent'),"
        "error => done(String(error)))"
    )
    assert "TypeError" in refused
    log = " ".join(entry["message"] for entry in opened.get_log("browser"))
    assert "Content Security Policy" in log


def test_columns_sort_both_ways(opened):
    assert column(opened, 0)[:3] == ["1", "2", "3"]
    click(opened, ".sortable th button", 1)
    names = column(opened, 1)
    assert names == sorted(names)
    click(opened, ".sortable th button", 1)
    assert column(opened, 1)[0] == "O2"
    place = headings(opened).index("Channel weight")
    click(opened, ".sortable th button", place)
    weights = [float(text) for text in column(opened, place)]
    assert weights == sorted(weights, reverse=True)
    assert (
        opened.execute_script("return document.querySelectorAll('.sortable th[aria-sort]').length")
        == 1
    )


def test_the_filter_keeps_rows_that_hold_every_word(opened):
    search(opened, "fp1 THETA")
    assert column(opened, 1) == ["Fp1"]
    assert column(opened, 2) == ["absolute power (theta)"]
    search(opened, "fp1 ap_theta")
    assert column(opened, 1) == ["Fp1"]
    assert "1 of 32" in opened.execute_script(
        "return document.querySelector('.count').textContent"
    )
    search(opened, "no such feature")
    assert column(opened, 1) == []


def test_all_rows_show_when_asked(opened):
    assert len(column(opened, 0)) == 25
    click(opened, ".more")
    assert len(column(opened, 0)) == 32


def test_what_is_filtered_is_downloaded(opened, results):
    search(opened, "Fp2")
    rows = download(opened)
    assert rows[0][:3] == ["rank", "channel", "feature"]
    own = results.ranking[(results.ranking["table"] == "cohort")].query("channel == 'Fp2'")
    assert [row[2] for row in rows[1:]] == list(own.sort_values("rank")["feature"])
    score = rows[0].index("score")
    assert [float(row[score]) for row in rows[1:]] == pytest.approx(
        list(own.sort_values("rank")["score"])
    )


def test_hostile_names_stay_text_and_formulas_are_disarmed(browser, hostile_page):
    browser.get_log("browser")
    browser.get(hostile_page.as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.scripts.length") == 1
    assert browser.execute_script("return document.images.length") == 0
    click(browser, ".more")
    assert "<script>alert(1)</script>" in column(browser, 1)
    cells = {row[1] for row in download(browser)[1:]}
    assert "'=1+1" in cells
    assert "=1+1" not in cells
    assert '"quoted"' in cells


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("look", ["light", "dark"])
def test_nothing_sticks_out_at_any_width(browser, page, width, look):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": look}]},
    )
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    try:
        browser.get(page.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(22, 27, 35)") == (look == "dark")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
