"""How many participants: cohorts in which the number of training subjects matters, or does not."""

import numpy as np
import pandas as pd
import pytest

from idfsmec import FeatureTable
from idfsmec.errors import InputError
from idfsmec.evaluation import Results, accuracy, participant_curve, participants
from idfsmec.report import plot_participant_curve, summarise, write_report

PROTOCOL = {"n_splits": 3, "n_inner_splits": 2, "svm_costs": [0.01], "ks": [4], "seeds": [0, 1]}


def cohort(effect, n_subjects=60, n_channels=8, seed=0):
    """Subjects of two epochs; every third is depressed, and their features are shifted."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(n_subjects), 2)
    depressed = np.arange(n_subjects) % 3 == 0
    trait = rng.normal(size=(n_subjects, 2 * n_channels)) + effect * depressed[:, None]
    X = trait[subject] + 0.3 * rng.normal(size=(subject.size, 2 * n_channels))
    names = [f"E{channel}__{feature}" for channel in range(n_channels) for feature in "ab"]
    return FeatureTable(
        pd.DataFrame(X, columns=names),
        pd.Series(np.where(depressed, "MDD", "HC")[subject]),
        pd.Series([f"s{number:02d}" for number in subject]),
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("participants")
    how = {"methods": ["IDFS-MEC"], "protocol": PROTOCOL | {"rates": [0.0]}, "n_jobs": 1}
    accuracy(cohort(1.0), out, **how)
    participants(cohort(1.0), out, sizes=[12, 20], protocol=PROTOCOL, n_jobs=1)
    return Results.read(out)


def test_all_training_subjects_give_the_auc_of_the_comparison(results):
    rows = results.chosen("participants").query("n_train_subjects == 40")
    compared = results.chosen("accuracy")
    assert rows["subject_roc_auc"].tolist() == compared["subject_roc_auc"].tolist()
    assert len(rows) == 6


def test_subsets_have_so_many_subjects_of_the_training_fold(results):
    rows = results.chosen("participants")
    assert (rows["n_train"] == 2 * rows["n_train_subjects"]).all()
    found = participant_curve(results)
    assert found.curve["n_subjects"].tolist() == [12, 20, 40]
    assert (found.n_repeats, found.half) == (2, 20)
    assert found.curve["mean"].iloc[-1] > 0.8
    assert found.curve["significant"].isin([0, 0.5, 1]).all()


@pytest.mark.usefixtures("empty_figure_files")
def test_the_page_has_figure_numbers_and_sentence(results):
    page = write_report(results.folder, overwrite=True).read_text("utf-8")
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert participant_curve(results).sentence in page
    assert "Numbers: AUC by number of training participants" in page
    assert len(summarise(results)["tables"][0]["participants"]) == 3
    assert plot_participant_curve(results).get_xlabel() == "training participants"


def test_nothing_is_computed_twice(results):
    events = []
    how = {"sizes": [12, 20], "protocol": PROTOCOL, "n_jobs": 1, "progress": events.append}
    participants(cohort(1.0), results.folder, **how)
    assert events == []


def summary_of(aucs):
    """A curve of two sizes in one repeat of ten folds, given the AUC of each fold."""
    rows = [
        {"experiment": "participants", "table": "t", "seed": 0, "fold": fold, "chosen": True,
         "n_train_subjects": n, "subject_roc_auc": auc, "n_train": 90, "n_test": 10}
        for n, values in zip((20, 40), aucs, strict=True) for fold, auc in enumerate(values)
    ]  # fmt: skip
    frames = dict.fromkeys(("selections", "ranking", "failures"), pd.DataFrame())
    unused = {"protocol": {}, "environment": {}, "tables": {}, "convergence": {}}
    return participant_curve(Results("folder", pd.DataFrame(rows), **frames, **unused))


def test_a_curve_rises_is_flat_or_undecided_by_the_ci_of_the_paired_difference():
    noise = np.tile([-0.05, 0.05], 5)
    small = np.tile([0.01, -0.01, 0.0, 0.01, -0.01], 2)
    rising = summary_of([0.7 + noise, 0.9 + noise + small])
    assert rising.rises is True
    assert "still rises with the number of participants (20 to 40" in rising.sentence
    flat = summary_of([0.8 + noise, 0.8 + noise + small])
    assert flat.rises is False
    assert "no longer rises by more than 0.03" in flat.sentence
    undecided = summary_of([0.8 + noise, 0.85 - noise])
    assert undecided.rises is None
    assert "cannot be decided with this many participants" in undecided.sentence


def test_a_repeat_is_significant_where_the_ci_over_its_folds_lies_above_chance():
    noise = np.tile([-0.3, 0.3], 5)
    found = summary_of([0.6 + noise, 0.9 + noise / 6])
    assert found.curve["significant"].tolist() == [0, 1]
    assert found.sentence.endswith("significant in 0 % with 20, in 100 % with 40.")


def test_an_auc_of_chance_has_no_answer():
    noise = np.tile([-0.3, 0.3], 5)
    assert "not shown to be above chance" in summary_of([0.5 + noise, 0.55 + noise]).sentence


def test_impossible_numbers_and_missing_results_are_refused(results, tmp_path):
    for sizes in ([8, 24], [12, 50]):
        with pytest.raises(InputError, match=r"it takes numbers from 10 to 40"):
            participants(cohort(1.0), tmp_path, sizes=sizes, protocol=PROTOCOL)
    with pytest.raises(InputError, match="--experiment participants"):
        participant_curve(results, "another")
