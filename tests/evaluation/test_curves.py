"""Curves of electrodes and participants from given scores, by their definitions."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import ParticipantCurve, electrode_curve, electrodes, participant_curve
from idfsmec.evaluation.protocol import Protocol
from idfsmec.evaluation.study_size import (
    _AUC,
    COUNTS,
    SIZES,
    _answer,
    _compute_electrodes,
    _compute_participants,
    _plan_participants,
    _signed,
)
from idfsmec.metrics import MeanInterval, fold_interval
from idfsmec.prediction.methods import METHODS
from idfsmec.prediction.samples import Samples
from idfsmec.table import FeatureTable

N_FOLDS = 5
SPREAD = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])


def results(experiment, rows, **more):
    frame = pd.DataFrame(rows).assign(
        table="t", fold=list(range(N_FOLDS)) * (len(rows) // N_FOLDS)
    )
    protocol = {"experiments": {experiment: {"margin": 0.03}}}
    given = {"protocol": protocol, "folder": "results", **more}
    return SimpleNamespace(chosen=lambda name: frame[frame["experiment"] == name], **given)


def of_electrodes(means, n_train=40):
    """Scores of five folds for each number of electrodes: those of all, and lower ones."""
    rows, rankings = [], []
    for number, mean in means.items():
        for fold in range(N_FOLDS):
            value = 0.8 + 2 * SPREAD[fold] - (0.8 - mean) * (1 + SPREAD[fold])
            rows.append(
                {
                    "experiment": "electrodes",
                    "method": "IDFS-MEC",
                    "n_channels": number,
                    "seed": 0,
                    "subject_roc_auc": value,
                    "n_train_subjects": n_train,
                }
            )
    orders = [("F3", "O2", "Cz"), ("F3", "O2", "Cz"), ("O2", "F3", "Cz"), ("F3", "Cz", "O2")]
    for order in orders:
        ranking = [f"{name}__{feature}" for name in order for feature in "ab"]
        rankings.append({"ranking": ranking})
    selections = pd.DataFrame(rankings).assign(
        table="t", method="IDFS-MEC", experiment="electrodes", k=1
    )
    return results("electrodes", rows, selections=selections)


def test_the_smallest_number_of_electrodes_is_found_in_a_fixed_order(monkeypatch):
    monkeypatch.setattr("idfsmec.evaluation.study_size.of_method", lambda frame, *_: frame)
    found = electrode_curve(of_electrodes({1: 0.799, 2: 0.74, 3: 0.79, 4: 0.8}))
    rows = found.curve.set_index("n_electrodes")
    for number, mean in {1: 0.799, 2: 0.74, 3: 0.79, 4: 0.8}.items():
        loss = (0.8 - mean) * (1 + SPREAD)
        folds = 0.8 + 2 * SPREAD - loss
        expected = fold_interval(folds, 50)  # 40 train in five folds of 50
        assert rows.loc[number, ["mean", "low", "high"]].tolist() == pytest.approx(
            [expected.mean, expected.low, expected.high]
        )
        expected = fold_interval(loss)
        assert rows.loc[number, ["loss", "loss_low", "loss_high"]].tolist() == pytest.approx(
            [expected.mean, expected.low, expected.high]
        )
    # Two electrodes end the search, though one would pass.
    assert (found.margin, found.smallest) == (0.03, 3)
    assert found.chosen[1].to_dict() == {"F3": 0.75, "O2": 0.25, "Cz": 0.0}
    assert found.chosen[2].to_dict() == {"F3": 1.0, "O2": 0.75, "Cz": 0.25}
    assert found.chosen[4].tolist() == [1.0] * 3
    none = electrode_curve(of_electrodes({2: 0.74, 4: 0.8}))
    assert none.smallest is None


def ranked(**rows):
    """Rows by number of electrodes: mean, low, high of the AUC and of the loss."""
    columns = ["mean", "low", "high", "loss", "loss_low", "loss_high"]
    return pd.DataFrame.from_dict(
        {int(name[1:]): values for name, values in rows.items()}, orient="index", columns=columns
    )


ALL = (0.8, 0.7, 0.9, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rows", "smallest", "said"),
    [
        ({"n4": (0.55, 0.5, 0.6, 0, 0, 0)}, None, "With all 4 electrodes the AUC is not shown"),
        ({"n1": ALL}, None, "The table has one electrode (AUC 0.80, 95 % CI 0.70 to 0.90)."),
        (
            {"n2": (0.79, 0.6, 0.9, 0.01, -0.005, 0.025), "n4": ALL},
            2,
            "2 of 4 electrodes are the smallest number that is not inferior to all of them by "
            "more than 0.03 AUC (AUC minus that of all −0.010, 95 % CI −0.025 to +0.005; all: ",
        ),
        (
            {"n2": (0.7, 0.6, 0.8, 0.1, 0.031, 0.2), "n4": ALL},
            None,
            "Fewer electrodes than all 4 are inferior by more than 0.03 AUC (2 electrodes: AUC "
            "minus that of all −0.100, 95 % CI −0.200 to −0.031",
        ),
        (
            {"n2": (0.7, 0.6, 0.8, 0.1, 0.03, 0.2), "n4": ALL},
            None,
            "How few electrodes are enough cannot be decided",
        ),
    ],
)
def test_the_answer_says_what_is_shown(rows, smallest, said):
    assert said in _answer(ranked(**rows), 0.03, smallest, _AUC)


def test_numbers_have_signs_and_no_negative_zero():
    assert [_signed(x) for x in (0.0126, -0.0126, -0.0001)] == ["+0.013", "−0.013", "0.000"]


def of_participants(means, shift):
    rows = [
        {
            "experiment": "participants",
            "method": "IDFS-MEC",
            "seed": seed,
            "subject_roc_auc": mean + width * SPREAD[fold] + shift * (seed == 1),
            "n_train_subjects": number,
        }
        for number, (mean, width) in means.items()
        for seed in (0, 1)
        for fold in range(N_FOLDS)
    ]
    return results("participants", rows)


@pytest.mark.parametrize(
    ("means", "rises", "said"),
    [
        ({10: (0.6, 1), 22: (0.65, 1), 40: (0.8, 1)}, True, "The AUC still rises"),
        ({10: (0.6, 1), 22: (0.8, 1), 40: (0.8, 1)}, False, "no longer rises by more than 0.03"),
        ({10: (0.6, 1), 22: (0.78, 1), 40: (0.8, 3)}, None, "Whether the AUC still rises cannot"),
        ({10: (0.5, 1), 22: (0.5, 1), 40: (0.51, 5)}, None, "With 40 training participants the"),
    ],
)
def test_whether_the_auc_rises_is_decided_against_half_of_the_participants(means, rises, said):
    found = participant_curve(of_participants(means, 0.0))
    assert found.half == 22
    assert found.n_repeats == 2
    folds = {n: np.tile(mean + width * SPREAD, (2, 1)) for n, (mean, width) in means.items()}
    expected = fold_interval(folds[40] - folds[22])
    assert (found.rise.mean, found.rise.low, found.rise.high) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )
    assert found.rises is rises
    assert said in found.sentence
    for n, row in found.curve.set_index("n_subjects").iterrows():
        interval = fold_interval(folds[n], 50)  # folds hold out a fifth of 50
        assert [row["mean"], row["low"], row["high"]] == pytest.approx(
            [interval.mean, interval.low, interval.high]
        )


def test_repeats_are_significant_by_themselves():
    means = {10: (0.45, 1), 20: (0.6, 1), 40: (0.75, 1)}
    found = participant_curve(of_participants(means, 0.15))
    expected = [
        np.mean([fold_interval(m + shift + SPREAD, 50).low > 0.5 for shift in (0, 0.15)])
        for m, _ in means.values()
    ]
    assert found.curve["significant"].tolist() == expected == [0.0, 0.5, 1.0]
    assert "in 50 % with 20, in 100 % with 40" in found.sentence


def test_without_rows_the_command_is_named():
    empty = of_participants({10: (0.5, 1), 20: (0.55, 1)}, 0.0)
    with pytest.raises(InputError, match="no results of the experiment electrodes; run"):
        electrode_curve(empty)
    with pytest.raises(InputError, match="on the table 'u'"):
        participant_curve(empty, "u")


def test_numbers_double_by_steps_of_three_halves_and_four_thirds():
    assert list(COUNTS) == sorted([2**k for k in range(9)] + [3 * 2**k for k in range(7)])
    assert list(SIZES) == [10, 15, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280]


@pytest.mark.parametrize("margin", [0.0, 0.5, 0.6])
def test_a_margin_is_between_nothing_and_all_that_an_auc_can_lose(margin, tmp_path):
    with pytest.raises(InputError, match="margin"):
        electrodes([], tmp_path, margin=margin)


def test_a_rise_whose_ci_begins_at_zero_is_not_shown():
    flat = ParticipantCurve(pd.DataFrame(), 1, 20, MeanInterval(0.05, 0.0, 0.1, 0.02, 9, 4))
    assert flat.rises is None


def cohort(sizes, n_channels=4):
    """Participants of two classes, with a sample each."""
    y = np.repeat(["HC", "MDD"], sizes)
    X = np.random.default_rng(0).normal(size=(y.size, n_channels)) + (y == "MDD")[:, None]
    columns = [f"E{v}__a" for v in range(n_channels)]
    return Samples.of("t", FeatureTable(pd.DataFrame(X, columns=columns), y, np.arange(y.size)))


def test_subsets_have_the_shares_of_the_classes(monkeypatch):
    drawn = []
    keep = "idfsmec.evaluation.study_size._score"
    monkeypatch.setattr(keep, lambda method, train, *_: drawn.append(np.bincount(train.y)))
    protocol = Protocol(n_splits=4, rates=(0.0,))
    for size in (8, 12, 20):
        _compute_participants(
            cohort((40, 120)), method=METHODS["ANOVA F"], protocol=protocol, size=size, seed=0,
            fold=0,
        )  # fmt: skip
    assert [counts.tolist() for counts in drawn] == [[2, 6], [3, 9], [5, 15]]


def test_random_electrodes_are_compared_for_all_numbers_but_the_whole(monkeypatch):
    seen = []

    def score(method, train, *_):
        seen.append(len(train.channels))
        return SimpleNamespace(rows=[], seconds=[])

    monkeypatch.setattr("idfsmec.evaluation.study_size._score", score)
    protocol = Protocol(n_splits=4, rates=(0.0,))
    method = METHODS["all features"].resolve()
    object.__setattr__(method, "name", "random")
    _compute_electrodes(
        cohort((20, 20)), method=method, protocol=protocol, numbers=[1, 2, 4], fixed=None,
        seed=0, fold=0,
    )  # fmt: skip
    assert seen == [1, 1, 2, 2]


def test_electrodes_are_ordered_by_training_samples(monkeypatch):
    seen = []

    def order(X, y, *_, numeric):
        seen.append(y.size)
        return np.arange(4)

    module = "idfsmec.evaluation.study_size"
    monkeypatch.setattr(f"{module}.order_electrodes", order)
    monkeypatch.setattr(f"{module}._score", lambda *_: SimpleNamespace(rows=[], seconds=[]))
    _compute_electrodes(
        cohort((20, 20)), method=METHODS["IDFS-MEC"], numbers=[2, 4], fixed=None, seed=0, fold=0,
        protocol=Protocol(n_splits=4, rates=(0.0,)),
    )  # fmt: skip
    assert seen == [30]


def test_the_smallest_number_has_three_participants_of_each_class_on_average():
    # 15 and 45 train in each fold of four: 12 of 60 are three of the smaller class.
    protocol = Protocol(n_splits=4, rates=(0.0,))
    plan = _plan_participants(cohort((20, 60)), [METHODS["ANOVA F"]], protocol, None)
    assert sorted({task.compute.keywords["size"] for task in plan}) == [15, 20, 30, 40, 60]
    plan = _plan_participants(cohort((20, 60)), [METHODS["ANOVA F"]], protocol, [12, 30])
    assert sorted({task.compute.keywords["size"] for task in plan}) == [12, 30, 60]
    for sizes in ([17], [91], [90]):
        with pytest.raises(InputError, match="numbers from 18 to 90"):
            _plan_participants(cohort((20, 100)), [METHODS["ANOVA F"]], protocol, sizes)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["A__a", "B__a"])
    labels, rows = np.repeat(["a", "b"], 20), pd.DataFrame({"bdi": np.arange(40.0)})
    table = FeatureTable(X, labels, np.arange(40), rows=rows).with_target("bdi")
    scores = Samples.of("s", table)
    with pytest.raises(InputError, match="numbers from 8 to 30"):
        _plan_participants(scores, [METHODS["ANOVA F"]], protocol, [7])
