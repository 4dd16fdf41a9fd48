"""How few electrodes: cohorts in which the electrodes that differ between groups are known."""

import numpy as np
import pandas as pd
import pytest

from idfsmec import FeatureTable
from idfsmec.errors import InputError
from idfsmec.evaluation import Results, electrode_curve, electrodes, train_model
from idfsmec.report import plot_electrode_curve, summarise, write_report
from idfsmec.selection import choose_electrodes

NAMES = ["Fp1", "Fp2", "F3", "F4", "C3", "C4", "T3", "T4", "T5", "T6", "O1", "O2"]
PROTOCOL = {"n_splits": 5, "n_inner_splits": 2, "svm_costs": [0.01], "ks": [2, 4]}


def cohort(where=("F3", "O2"), effect=2.5, n_subjects=60, n_epochs=2, seed=0):
    """Subjects with two features per electrode; the groups differ at some electrodes."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(n_subjects), n_epochs)
    trait = rng.normal(size=(n_subjects, len(NAMES), 2))
    for name in where:
        trait[:, NAMES.index(name), 0] += effect * (np.arange(n_subjects) % 2)
    X = trait[subject] + 0.3 * rng.normal(size=(subject.size, len(NAMES), 2))
    X[rng.random((n_subjects, len(NAMES)))[subject] < 0.05] = np.nan
    columns = [f"{name}__{feature}" for name in NAMES for feature in ("a", "b")]
    return FeatureTable(
        pd.DataFrame(X.reshape(subject.size, -1), columns=columns),
        pd.Series(np.array(["HC", "MDD"])[subject % 2]),
        pd.Series([f"s{number:02d}" for number in subject]),
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("electrodes")
    electrodes(cohort(), out, counts=[1, 2, 4], margin=0.1, protocol=PROTOCOL, n_jobs=1)
    return Results.read(out)


def test_the_two_electrodes_that_differ_are_chosen_and_are_enough(results):
    found = electrode_curve(results)
    assert list(found.chosen.index[:2]) in (["F3", "O2"], ["O2", "F3"])
    assert found.chosen[2].iloc[:2].tolist() == [1.0, 1.0]
    assert found.chosen[len(NAMES)].tolist() == [1.0] * len(NAMES)
    assert found.smallest in (1, 2)
    assert "not inferior to all of them by more than 0.1 AUC" in found.sentence
    curve = found.curve.set_index(["choice", "n_electrodes"])["mean"]
    assert curve["IDFS-MEC", 2] > 0.9
    assert curve["IDFS-MEC", 2] > curve["random", 2] + 0.1
    assert found.curve["high"].max() <= 1.0


def test_headsets_are_scored_where_the_table_has_their_electrodes_under_old_names_too(results):
    choices = set(electrode_curve(results).curve["choice"])
    assert choices == {"IDFS-MEC", "random", "OpenBCI Cyton"}  # T5 and T6 are P7 and P8


def test_rows_are_exported_with_the_number_of_electrodes(results):
    rows = pd.read_csv(results.folder / "results.csv").query("experiment == 'electrodes'")
    assert sorted(set(rows["n_channels"])) == [1, 2, 4, 8, 12]
    assert rows["k"].tolist() == (2 * rows["n_channels"]).tolist()


@pytest.mark.usefixtures("empty_figure_files")
def test_the_page_has_figure_table_map_and_sentence(results):
    page = write_report(results.folder, overwrite=True).read_text("utf-8")
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    sentence = electrode_curve(results).sentence
    assert sentence in page
    assert "Numbers: AUC by number of electrodes" in page
    assert 'id="electrodes-chosen"' in page
    assert len(summarise(results)["tables"][0]["electrodes"]) == 8
    assert plot_electrode_curve(results).get_ylabel() == "AUC per participant"


def test_nothing_is_computed_twice(results):
    events = []
    electrodes(
        cohort(), results.folder, counts=[1, 2, 4], protocol=PROTOCOL, n_jobs=1,
        progress=events.append,
    )  # fmt: skip
    assert events == []


def test_noise_has_no_answer(tmp_path):
    table = cohort(where=(), n_subjects=30)
    found = electrode_curve(electrodes(table, tmp_path, counts=[2], protocol=PROTOCOL, n_jobs=1))
    assert found.smallest is None
    assert "not shown to be above chance" in found.sentence


def test_few_participants_decide_nothing(tmp_path):
    table = cohort(NAMES, effect=1.2, n_subjects=24)
    protocol = PROTOCOL | {"n_splits": 4}
    found = electrode_curve(electrodes(table, tmp_path, counts=[1], protocol=protocol, n_jobs=1))
    assert found.smallest is None
    assert "cannot be decided" in found.sentence or ("are inferior" in found.sentence)


def test_wrong_numbers_and_missing_results_are_refused(results, tmp_path):
    with pytest.raises(InputError, match="has 12 channels, not 13"):
        electrodes(cohort(), tmp_path, counts=[13], protocol=PROTOCOL)
    with pytest.raises(InputError, match="13 electrodes cannot be chosen: the table has 12"):
        choose_electrodes(cohort(), 13)
    with pytest.raises(InputError, match="--experiment electrodes"):
        electrode_curve(results, "another")


def test_a_model_of_two_electrodes_needs_no_other():
    model = train_model(cohort(), electrodes=2, n_splits=3, n_repeats=1)
    assert sorted(model.channels) == ["F3", "O2"]
    assert len(model.columns) == 4
    assert model.performance["metrics"]["roc_auc"]["mean"] > 0.9
    assert model.protocol["electrodes"] == 2


def test_electrodes_of_a_model_are_chosen_by_training_subjects_alone():
    # Chosen by all subjects, the best of twelve electrodes would separate noise above chance.
    tables = [cohort(where=(), n_subjects=24, seed=seed) for seed in range(4)]
    models = [train_model(table, electrodes=1, n_splits=3, n_repeats=1) for table in tables]
    aucs = [model.performance["metrics"]["roc_auc"]["mean"] for model in models]
    assert np.mean(aucs) < 0.6
