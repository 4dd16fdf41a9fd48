"""The audit's section of the report: the verdict on top, and what could have been missed."""

import pytest

from idfsmec.audit import add_audit, audit, audits_of
from idfsmec.errors import ExistingFileError
from idfsmec.evaluation import Results
from idfsmec.report import summarise, write_audit_page, write_report, write_reporting_checklist
from tests.audit.cohorts import audited
from tests.report.make_results import write_results

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_figure_files")]

SMALL = {"n_splits": 5, "n_jobs": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    tables = {"cohort": audited(20, device=1.0)}
    write_results(folder, tables, experiments=("accuracy",), methods=(), rates=(0.0,))
    add_audit(tables, folder, **SMALL)
    return folder


def test_the_verdict_stands_above_the_findings(folder):
    page = write_report(folder, overwrite=True).read_text("utf-8")
    assert page.index('class="verdict red"') < page.index('class="lead"')
    assert '<section id="audit">' in page
    assert "no computation can say whether by illness or acquisition" in page
    assert '<tr class="suspect">' in page
    assert "&#34;" not in page


def test_the_section_shows_recording_and_eeg_beside_each_other(folder):
    said = summarise(Results.read(folder))["tables"][0]["audit"]
    tiles = {name: one for name, one, _ in said["tiles"]}
    assert tiles["Leading fact: line noise"]["auc"] > 0.9
    assert tiles["EEG"]["auc"] > 0.5
    # The run's own figure is that of the settings that were tuned, as on the rest of the page.
    chosen = Results.read(folder).chosen()
    chosen = chosen[chosen["method"] == "IDFS-MEC"]
    chosen = chosen[chosen["rate"] == chosen["rate"].min()]
    assert said["run"]["auc"] == pytest.approx(chosen["subject_roc_auc"].mean())
    assert said["variables"][0]["suspect"]
    assert said["claims"][0]["name"].startswith("correct: participants held out")


def test_the_page_says_what_could_have_been_missed(folder, tmp_path):
    found = audits_of(Results.read(folder))["cohort"]
    page = write_audit_page(found, tmp_path / "audit.html").read_text("utf-8")
    assert "What could have been missed: with 20 participants" in page
    tile = page[page.index("<h3>Leading fact: line noise</h3>") : page.index("<h3>EEG</h3>")]
    assert "corrected p 0.0005." in tile


def test_names_of_labels_are_escaped(tmp_path):
    found = audit(audited(20, device=1.0, labels=("<b>HC", "MDD")), **SMALL)
    page = write_audit_page(found, tmp_path / "audit.html").read_text("utf-8")
    assert "<b>HC" not in page
    assert "&lt;b&gt;HC" in page


def test_a_folder_with_nothing_but_an_audit_has_a_report(tmp_path):
    add_audit(audited(20), tmp_path, **SMALL)
    assert "Diagnosis or acquisition?" in write_report(tmp_path).read_text("utf-8")


def test_the_checklist_is_answered_from_the_results(folder, tmp_path):
    tables = {"cohort": audited(20, device=1.0)}
    path = write_reporting_checklist(tmp_path / "checklist.md", Results.read(folder), tables)
    text = path.read_text("utf-8")
    assert "sampling rate 250 Hz" in text
    assert "subject-wise" in text
    assert "Acquisition and diagnosis cannot be told apart" in text
    with pytest.raises(ExistingFileError):
        write_reporting_checklist(path, Results.read(folder))
