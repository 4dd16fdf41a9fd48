"""Pages for everybody: axe-core finds no violation, in the light and in the dark look.

axe-core is a program of others in JavaScript (Deque Systems, MPL 2.0), which `make test-long`
fetches; AXE_CORE names its file where it lies elsewhere.
"""

import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from idfsmec import FeatureTable
from idfsmec.audit import audit
from idfsmec.evaluation import train_model, validate
from idfsmec.prediction import predict_subjects, save_model
from idfsmec.report import (
    write_audit_page,
    write_model_card,
    write_report,
    write_subject_pages,
    write_validation,
)
from tests.audit.cohorts import audited
from tests.evaluation.cohorts import make_cohort
from tests.report.make_results import simulate, write_results

ROOT = Path(__file__).parents[2]
AXE = Path(os.environ.get("AXE_CORE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))
BUILT = ROOT / "docs" / "_build" / "html"
LEVELS = ("red", "amber", "green", "grey")
DOCS = (
    "index", "quickstart", "method", "faq", "guide/predict", "reference/commands",
    "reference/api", "reference/generated/idfsmec.IDFSMEC", "auto_examples/index",
    "auto_examples/plot_study", "search",
)  # fmt: skip

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not AXE.is_file(),
        reason="no axe-core: npm install axe-core, or set AXE_CORE to axe.min.js",
    ),
]


@pytest.fixture(scope="session")
def pages(tmp_path_factory, page):
    """A page of each kind; those of predictions have warnings and a group of few participants."""
    folder = tmp_path_factory.mktemp("pages")
    many, found = make_cohort(n_subjects=24), audit(audited(device=0.9), n_jobs=1)
    rows = pd.DataFrame({"sex": ["f" if name < "s08" else "m" for name in many.subjects]})
    table = FeatureTable(many.X, many.y, many.subjects, rows=rows)
    model = train_model(table, n_splits=3, n_repeats=1, audit=found.verdict)
    new = make_cohort(n_subjects=12, n_channels=3, seed=1)
    new = FeatureTable(new.X, new.y, "new " + new.subjects)
    three = simulate(labels=("BD", "HC", "MDD"), n_subjects=18)
    options = {"methods": ("mRMR",), "n_splits": 2, "rates": (0.3,)}
    several = write_results(
        folder / "several", {"a": simulate(), "b": three}, ("accuracy",), **options
    )
    return {
        "report": page,
        "report of two tables": write_report(several),
        **{
            f"audit, {level}": write_audit_page(
                replace(found, level=level), folder / f"{level}.html"
            )
            for level in LEVELS
        },
        "card": write_model_card(model, save_model(model, folder / "m.skops"))[1],
        "participant": write_subject_pages(model, predict_subjects(model, new), folder / "p")[0],
        "validation": write_validation(model, validate(model, new), folder / "validation"),
    }


def violations(browser, address, look):
    """Rules that a page violates, each with the elements."""
    media = {"prefers-color-scheme": look, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in media.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(address)
    # The theme of the documentation remembers a look; the system's decides here.
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.execute_script(AXE.read_text("utf-8"))
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run().then(found => done(found.violations.map(rule =>"
        " [rule.id, rule.nodes.slice(0, 3).map(node => node.html.slice(0, 160)"
        " + ' ' + node.failureSummary)])), error => done(String(error)))"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    return found


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize(
    "kind",
    [
        "report",
        "report of two tables",
        *(f"audit, {level}" for level in LEVELS),
        "card",
        "participant",
        "validation",
    ],
)
def test_a_page_violates_no_rule(browser, pages, kind, look):
    assert violations(browser, pages[kind].as_uri(), look) == []


@pytest.mark.skipif(not BUILT.is_dir(), reason="no documentation: run make docs first")
@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("name", DOCS)
def test_a_page_of_the_documentation_violates_no_rule(browser, name, look):
    assert violations(browser, (BUILT / f"{name}.html").as_uri(), look) == []
