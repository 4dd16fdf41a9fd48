"""Participants of the training table are recognised: all of them by a digest, some by hashes."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.prediction import (
    find_training_subjects,
    fit_model,
    load_model,
    predict_subjects,
    save_model,
)
from idfsmec.prediction.subjects import TRAINED_ON
from idfsmec.table import FeatureTable
from tests.evaluation.cohorts import make_cohort

DIGEST = "model.skops.training.json"


@pytest.fixture(scope="module")
def table():
    return make_cohort(n_subjects=16, effect=3.0)


@pytest.fixture
def saved(table, tmp_path):
    return save_model(fit_model(table), tmp_path / "model.skops")


@pytest.fixture(scope="module")
def remembering(table):
    return fit_model(table, remember_participants=True)


def everyone(table):
    return sorted(table.subjects.unique())


def test_the_training_table_is_recognised_in_another_order_under_other_names(table, saved):
    order = np.random.default_rng(0).permutation(len(table))
    mixed = table.take(order)
    renamed = FeatureTable(mixed.X, ["?"] * len(mixed), "new " + mixed.subjects)
    assert find_training_subjects(load_model(saved), renamed) == everyone(renamed)
    predictions = predict_subjects(load_model(saved), renamed)
    assert all(subject.warnings[0] == TRAINED_ON for subject in predictions.subjects)


def test_the_digest_is_beside_the_model_and_not_in_it(table, saved):
    beside = saved.with_name(DIGEST)
    digest = json.loads(beside.read_text())["digest"]
    assert digest.encode() not in saved.read_bytes()
    beside.unlink()
    assert load_model(saved).digest == ""
    assert find_training_subjects(load_model(saved), table) == []


def test_a_digest_of_another_model_is_not_used_and_a_damaged_one_is_refused(table, saved):
    other = make_cohort(n_subjects=12, seed=5)
    again = save_model(fit_model(other), saved.with_name("again.skops"))
    again.with_name("again.skops.training.json").replace(saved.with_name(DIGEST))
    assert load_model(saved).digest == ""
    saved.with_name(DIGEST).write_text("[]")
    with pytest.raises(InputError, match=r"training\.json: is no digest of a training table"):
        load_model(saved)


def test_a_part_of_the_table_is_recognised_only_by_a_model_that_remembers(
    table, saved, remembering
):
    part = table.take((table.subjects < "s05").to_numpy())
    assert find_training_subjects(load_model(saved), part) == []
    assert find_training_subjects(remembering, part) == everyone(part)


def test_remembered_participants_are_found_among_others_by_some_of_their_samples(
    table, remembering, tmp_path
):
    others = make_cohort(n_subjects=6, effect=3.0, seed=9)
    some = table.take(np.flatnonzero((table.subjects < "s03").to_numpy())[::2])
    X = pd.concat([others.X, some.X.iloc[:, ::-1] * (1 + 1e-9)], ignore_index=True)
    names = [*("new " + others.subjects), *some.subjects]
    both = FeatureTable(X, [*others.y, *some.y], names)
    loaded = load_model(save_model(remembering, tmp_path / "model.skops"))
    assert find_training_subjects(loaded, both) == ["s00", "s01", "s02"]
    warned = [s.subject for s in predict_subjects(loaded, both).subjects if s.warnings]
    assert warned == ["s00", "s01", "s02"]


def test_hashes_are_keyed_and_few(table, remembering):
    again = fit_model(table.take(np.arange(len(table) - 4)), remember_participants=True)
    assert not set(again.remembered["samples"]) & set(remembering.remembered["samples"])
    long = make_cohort(n_subjects=4, n_epochs=20, effect=3.0)
    assert len(fit_model(long, remember_participants=True).remembered["samples"]) == 4 * 8
    assert fit_model(table).remembered == {}


def test_missing_channels_and_zeros_are_told_apart():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 4)), columns=["F3__a", "F3__b", "O1__a", "O1__b"])
    X.loc[:7, ["F3__a", "F3__b"]] = np.nan
    table = FeatureTable(X, np.repeat(["HC", "MDD"], 20), np.arange(40).astype(str))
    model = fit_model(table, remember_participants=True)
    assert len(find_training_subjects(replace(model, digest=""), table)) == 40
    filled = FeatureTable(X.fillna(0.0), table.y, table.subjects)
    found = find_training_subjects(replace(model, digest=""), filled)
    assert len(found) == 32


def test_the_condition_that_was_trained_on_is_recognised_in_the_whole_table():
    table = make_cohort(n_subjects=12, effect=3.0)
    rows = pd.DataFrame({"condition": np.where(np.arange(len(table)) % 2, "open", "closed")})
    whole = FeatureTable(table.X, table.y, table.subjects, rows=rows)
    model = fit_model(whole.select_conditions(["closed"]))
    assert find_training_subjects(model, whole) == everyone(whole)
    assert find_training_subjects(model, whole.select_conditions(["open"])) == []
