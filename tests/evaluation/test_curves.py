"""Curves of electrodes and participants from given scores, by their definitions."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import electrode_curve, participant_curve
from idfsmec.evaluation.study_size import _AUC, _answer, _signed
from idfsmec.metrics import fold_interval

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
