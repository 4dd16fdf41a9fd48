"""A tenth of the studies by which docs/guarantees.md says how often the audit is wrong."""

import numpy as np
import pytest
from benchmarks.quality.audit import CELLS, FIRST_SEED, audit_study, read_features, summarise

from idfsmec.metrics import wilson_interval


@pytest.mark.long
@pytest.mark.parametrize("name", CELLS)
def test_the_audit_is_wrong_no_more_often_than_stated(name):
    cell, features = CELLS[name], [read_features(None)]
    done = [
        audit_study(features, name, n, which, 2 * FIRST_SEED["fresh"] + seed, "ridge")
        for seed in range(40)
        for n in cell.sizes
        for which in range(len(cell.strengths))
    ]
    for row in summarise(done).itertuples():
        n_wrong = round(row.share * row.studies)
        low = wilson_interval(n_wrong, row.studies, z=2.6)[0] if row.studies else 0.0
        assert low <= cell.at_most, row
    assert {"green", "grey", "amber", "red"} >= {row["level"] for row in done}


def test_a_study_is_drawn_and_judged_alike_each_time():
    features = [read_features(None)]
    first, second = (
        audit_study(features, "linear", 160, 0, FIRST_SEED["fresh"] + 4, "ridge") for _ in range(2)
    )
    assert first == second
    assert first["level"] == "red"
    assert first["found"] == ["gaps: gain"]
    table = summarise([first])
    assert (table["red"][0], table["studies"][0]) == (1.0, 1)
    assert np.isclose(table["low"][0], 0.0)
