"""CONTRIBUTING.md says what happens in one fold, and in which files."""

import re
import sys
from pathlib import Path

from idfsmec.evaluation import Protocol
from idfsmec.evaluation.tasks import plan_folds, run_task
from idfsmec.prediction import METHODS
from idfsmec.prediction.samples import Samples
from tests.evaluation.cohorts import make_cohort

ROOT = Path(__file__).parents[2]
SECTION = re.compile(r"^## What happens in one fold\n(.*?)^## ", re.MULTILINE | re.DOTALL)


def test_the_functions_that_the_page_names_are_those_of_a_fold():
    text = SECTION.search((ROOT / "CONTRIBUTING.md").read_text("utf-8"))[1]
    files = set(re.findall(r"`(\w+/\w+\.py)`", text))
    assert len(files) == 3
    source = "".join((ROOT / "src/idfsmec" / name).read_text("utf-8") for name in files)
    named = {name for name in re.findall(r"`(?:\w+\.)?(\w+)`", text) if f"def {name}(" in source}
    assert {"load_fold", "score_fold", "tune", "fit_selected"} <= named
    assert len(text.strip().splitlines()) <= 20

    samples = Samples.of("table", make_cohort(20, 2, 3, 3, effect=2.0))
    protocol = Protocol(rates=[0.2], n_splits=2, ks=[2, 4], n_inner_splits=2)
    task = next(plan_folds(samples, [METHODS["mRMR"], METHODS["IDFS-MEC"]], protocol))
    runs = set()
    paths = {str(Path("idfsmec", name)) for name in files}

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.endswith(tuple(paths)):
            runs.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        result = run_task(task, {"table": samples})
    finally:
        sys.setprofile(None)
    assert not result.error
    assert named - {"fit"} <= runs
