"""The page in a real browser: nothing complains, everything that can be clicked works."""

import csv
import time

import pytest
from PIL import Image

from idfsmec.report.text import percent
from idfsmec.table.columns import feature_label

pytestmark = pytest.mark.slow


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


def choose(driver, label, option):
    """Choose in the filter of a name over the first ranked table."""
    driver.execute_script(
        "const label = [...document.querySelectorAll('.ranked .tools label')]"
        ".find(each => each.textContent.startsWith(arguments[0]));"
        "const select = label.querySelector('select'); select.value = arguments[1];"
        "select.dispatchEvent(new Event('change'))",
        label,
        option,
    )


def download(driver):
    """Click the button of the table and read the file that arrives."""
    with arriving(driver, ".download", ".csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def arriving(driver, selector, ending):
    """Click, and return the path of the file that arrives."""
    before = set(driver.downloads.glob(f"*{ending}"))
    click(driver, selector)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        new = set(driver.downloads.glob(f"*{ending}")) - before
        under_way = any(driver.downloads.glob("*.crdownload"))
        # The browser makes an empty file first, writes to another one and renames that.
        if new and not under_way and all(path.stat().st_size for path in new):
            return new.pop()
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
    assert "No feature matches" in opened.find_element("css selector", ".none").text
    click(opened, ".clear")
    assert len(column(opened, 1)) == 25
    assert not opened.find_element("css selector", ".none").is_displayed()


def test_channel_feature_direction_and_stability_filter_together(opened, results):
    ranking = results.ranking[results.ranking["table"] == "cohort"].sort_values("rank")
    choose(opened, "Channel", "O2")
    assert column(opened, 2) == [
        feature_label(name) for name in ranking.query("channel == 'O2'")["feature"]
    ]
    choose(opened, "Feature", "absolute power (alpha)")
    assert (column(opened, 1), column(opened, 2)) == (["O2"], ["absolute power (alpha)"])
    click(opened, ".clear")
    choose(opened, "Direction", "higher in MDD")
    click(opened, ".more")
    higher = ranking.query("direction == 'higher in MDD'")
    assert column(opened, 1) == list(higher["channel"])
    choose(opened, "Stability", "stable")
    halves = results.resampling["cohort"]
    names = higher["channel"] + "__" + higher["feature"]
    stable = names.map(halves["frequency"]) >= halves["threshold"] - 1e-9
    assert column(opened, 1) == list(higher["channel"][stable])


def test_figures_arrive_as_drawing_image_and_numbers(opened, results):
    drawing = arriving(opened, "#effects .files button:nth-of-type(1)", ".svg").read_text("utf-8")
    assert drawing.startswith("<svg")
    assert "var(" not in drawing  # colours of paper, also where a program knows no variables
    assert "#c8460e" in drawing
    with Image.open(arriving(opened, "#effects .files button:nth-of-type(2)", ".png")) as image:
        assert image.width > 1500
        assert image.getpixel((0, 0))[:3] == (255, 255, 255)
        assert image.convert("L").getextrema()[0] < 100  # there is something on the paper
    with arriving(opened, "#effects .files a", ".csv").open(encoding="utf-8") as file:
        numbers = list(csv.DictReader(file))
    ranking = results.ranking[results.ranking["table"] == "cohort"].sort_values("rank").head(20)
    assert [float(row["hedges_g"]) for row in numbers] == pytest.approx(
        list(ranking["hedges_g"]), rel=1e-5
    )


def test_a_pointer_finds_the_value_of_a_bar_and_of_a_cell(opened, results):
    def titled(figure, start):
        return opened.execute_script(
            "const title = [...document.querySelectorAll(arguments[0] + ' .values title')]"
            ".find(each => each.textContent.startsWith(arguments[1]));"
            "const box = title.parentNode.getBoundingClientRect();"
            "title.parentNode.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const now = title.parentNode.getBoundingClientRect();"
            "const hit = document.elementFromPoint(now.x + now.width / 2, now.y + now.height / 2);"
            "return [title.textContent, hit === title.parentNode]",
            figure,
            start,
        )

    frequency = results.resampling["cohort"]["channel_frequency"]["O2"]
    assert titled("#selection-frequency-channels", "O2") == [f"O2: {percent(frequency)}", True]
    row = results.ranking.query("channel == 'F3' and feature == 'ap_alpha'").iloc[0]
    name = "absolute power (alpha) at F3"
    assert titled("#heatmap", name) == [f"{name}: {row['score']:.3g}", True]


def test_the_navigation_stays_and_marks_the_section_that_is_read(opened):
    def present():
        return opened.execute_script(
            "return [...document.querySelectorAll('nav [aria-current]')].map(a => a.textContent)"
        )

    assert present() == ["Findings"]
    for name, there in (("stability", "Stability"), ("ranking", "Ranking")):
        opened.execute_async_script(
            "document.getElementById(arguments[0]).scrollIntoView({behavior: 'instant'});"
            "requestAnimationFrame(() => requestAnimationFrame(arguments[1]))",
            name,
        )
        assert present() == [there]
        top = opened.execute_script(
            "return document.querySelector('nav').getBoundingClientRect().top"
        )
        assert top == 0


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
