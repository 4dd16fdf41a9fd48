import dataclasses
import re

import pytest
from markupsafe import escape
from PIL import Image

from idfsmec.errors import ExistingFileError, InputError
from idfsmec.evaluation import Results
from idfsmec.report import summarise, write_report
from idfsmec.report.text import unique_slugs
from tests.report.make_results import simulate, write_results

pytestmark = pytest.mark.slow

SECTIONS = ("channels", "heatmap", "effects", "selection-frequency-features",
            "selection-frequency-channels", "missing", "accuracy-by-rate", "differences",
            "accuracy-by-k", "decision-curve", "imputation", "ablation", "sensitivity", "cost",
            "convergence")  # fmt: skip
DRAWN = [section for section in SECTIONS if not section.startswith("imputation")]


def test_the_page_stands_alone(page):
    html = page.read_text("utf-8")
    assert "default-src 'none'" in html
    loaded = re.findall(r'(?:\ssrc|(?<!xlink:)href|action)="([^"]+)"', html)
    assert all(address.startswith(("#", "data:")) for address in loaded)
    linked = re.findall(r'xlink:href="([^"]+)"', html)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in linked)
    assert "@import" not in html
    assert "url(http" not in html


def test_every_figure_is_on_the_page_and_in_both_formats(page):
    html = page.read_text("utf-8")
    for section in DRAWN:
        assert re.search(rf'<figure class="figure" id="{section}">', html), section
        svg = (page.parent / "figures" / f"{section}.svg").read_text("utf-8")
        assert svg.startswith("<?xml")
        with Image.open(page.parent / "figures" / f"{section}.png") as image:
            assert image.width > 1000
            assert image.getextrema()[3] == (255, 255)  # nothing is transparent
            assert round(image.info["dpi"][0]) == 300


def test_every_figure_says_folds_and_tuning(page):
    html = page.read_text("utf-8")
    figures = re.findall(r"<figure.*?</figure>", html, flags=re.DOTALL)
    assert len(figures) == len(DRAWN)
    for figure in figures:
        assert "folds" in figure
        assert re.search(r"tuning|settings", figure)


def test_what_was_tested_stands_under_the_figure(page, results):
    html = page.read_text("utf-8")
    tested = summarise(results)["tables"][0]["tested"]
    for section in ("accuracy-by-rate", "accuracy-by-k"):
        figure = re.search(rf'<figure class="figure" id="{section}">.*?</figure>', html, re.DOTALL)
        assert tested[section][""]
        shown = figure.group().replace("\N{NO-BREAK SPACE}", " ")
        assert escape(tested[section][""].replace("\N{NO-BREAK SPACE}", " ")) in shown


def test_what_was_not_run_is_left_out(page):
    html = page.read_text("utf-8")
    for section in ("audit", "imputation-section"):
        assert f'<section id="{section}">' not in html
        assert f'href="#{section}"' not in html
    assert html.count('class="verdict') == html.count('class="verdict grey"') == 1  # Not audited
    assert "not run" not in html
    assert "not measured" not in html


def test_figures_on_the_page_follow_its_colours(page):
    html = page.read_text("utf-8")
    assert "var(--fig-emphasis)" in html
    assert "fill: #1c2330" not in html
    assert html.count("--fig-ink:") == 2  # light and dark


def test_protocol_versions_and_command_are_there(page, results):
    html = page.read_text("utf-8")
    assert "<dt>Evaluation</dt><dd>subject-wise folds · nested tuning" in html
    for package, version in results.environment["versions"].items():
        assert f"{package} {version}" in html
    assert "<h3>Run it again</h3>" in html


def test_the_classifier_is_named_and_who_has_another_one(results):
    used = {"IDFS-MEC": "ridge", "mRMR": "ridge", "ReliefF": "boosting"}
    methods = {name: about | {"classifier": used.get(name, "ridge")}
               for name, about in results.methods.items()}  # fmt: skip
    lines = dict(summarise(dataclasses.replace(results, methods=methods))["protocol"])
    assert lines["Classifier"] == "ridge; ReliefF (10 neighbours): boosting"
    assert dict(summarise(results)["protocol"])["Classifier"] == "svm"
    old = {name: {"family": about["family"]} for name, about in methods.items()}
    assert "Classifier" not in dict(
        summarise(dataclasses.replace(results, methods=old))["protocol"]
    )


def test_names_that_look_like_markup_stay_text(hostile_page):
    html = hostile_page.read_text("utf-8")
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<img src=x>" not in html
    assert len(re.findall(r"<script", html)) == 1


def test_a_report_is_not_overwritten_unless_asked(page):
    with pytest.raises(ExistingFileError, match=r"report\.html: exists already"):
        write_report(page.parent)


def test_what_cannot_be_written_is_said_before_anything_is_read(tmp_path, monkeypatch):
    (tmp_path / "figures").write_text("no folder")
    monkeypatch.setattr(Results, "read", lambda folder: pytest.fail("was read"))
    with pytest.raises(InputError, match=r"figures.*cannot be written"):
        write_report(tmp_path)


def test_long_names_of_tables_make_file_names_that_disks_take():
    names = ["a" * 300, "a" * 299 + "b", "clinic"]
    slugs = unique_slugs(names)
    assert len(set(slugs)) == 3
    assert max(map(len, slugs)) < 120


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no results"):
        write_report(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        write_report(tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("empty_figure_files")
def test_only_one_experiment_leaves_the_others_out(tmp_path):
    folder = write_results(tmp_path, {"t": simulate()}, ("sensitivity",))
    events = []
    html = write_report(folder, progress=events.append).read_text("utf-8")
    sections = [str(event.item).split(",")[0] for event in events[:-1]]
    assert sections == [section for section in SECTIONS if section in sections]
    assert [event.done for event in events] == list(range(len(sections) + 1))
    assert events[-1].done == events[-1].total
    assert 'id="sensitivity"' in html
    for section in ("comparison", "stability", "imputation-section"):
        assert f'id="{section}"' not in html


@pytest.mark.usefixtures("empty_figure_files")
def test_tables_of_many_and_of_three_channels_and_classes_share_a_page(tmp_path):
    small = simulate(("Fp1", "Fpz", "Fp2"), labels=("HC", "MDD", "BD"), n_subjects=27)
    folder = write_results(
        tmp_path, {"A": simulate(seed=1), "B": small}, ("accuracy",), ("ANOVA F",),
        patterns=("random", "recording"), n_splits=2, ks=(3, 6),
    )  # fmt: skip
    html = write_report(folder).read_text("utf-8")
    for table in ("a", "b"):
        for pattern in ("random", "recording"):
            assert f'id="accuracy-by-rate-{table}-{pattern}"' in html
            assert (tmp_path / "figures" / f"accuracy-by-k-{table}-{pattern}.png").exists()
    assert "; chance 33" in html
    assert 'id="sensitivity' not in html


@pytest.mark.usefixtures("empty_figure_files")
def test_results_that_lack_pieces_still_make_a_page(results, tmp_path, monkeypatch):
    bare = dataclasses.replace(
        results, convergence={}, environment={}, protocol={}, resampling={},
        ranking=results.ranking[:0], scores=results.chosen(),
    )  # fmt: skip
    monkeypatch.setattr(Results, "read", lambda folder: bare)
    html = write_report(tmp_path).read_text("utf-8")
    assert "stability not measured" not in html  # nothing was ranked
    for heading in ("Run it again", "Versions", "All features, ranked"):
        assert heading not in html, heading
