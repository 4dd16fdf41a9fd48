"""Facts against the diagnosis, and the EEG's prediction against facts: plain definitions."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from idfsmec.audit.association import (
    AUC_TO_FIND,
    CONCORDANCE_TO_FIND,
    Fact,
    _standardised,
    _waves,
    carried_facts,
    concordance_of,
    detectable_concordance,
    distance_from_median,
    facts_of,
    judge_family,
    participants_to_find,
    products,
)
from idfsmec.audit.levels import COINCIDE, COINCIDE_SCORE
from idfsmec.metrics import FACT_ALPHA, concordance, detectable_auc

Y = np.arange(80) % 2
TARGET = np.column_stack([Y == 0, Y == 1]).astype(float)


def frame(**facts):
    """Facts by name: a list of numbers, or columns of levels."""
    columns = {
        name: pd.DataFrame(values) if np.ndim(values) == 2 else pd.DataFrame({"": values})
        for name, values in facts.items()
    }
    return facts_of(pd.concat(columns, axis=1, names=["variable", "level"]))


def test_one_fact_has_the_p_of_the_rank_test():
    rng = np.random.default_rng(0)
    values = rng.normal(size=80) + 0.5 * Y
    values[:4] = np.round(values[:4])  # ties do no harm
    (row,) = judge_family(frame(device=(values > 0) * 1.0), TARGET, seed=1).facts
    expected = stats.fisher_exact(pd.crosstab(Y, values > 0)).pvalue
    assert row["p"] == pytest.approx(expected, abs=0.03)
    score = rng.normal(size=80)
    ranks = stats.rankdata(score)[:, None]
    (row,) = judge_family(frame(device=(values > 0) * 1.0), ranks, seed=1).facts
    assert row["p"] == pytest.approx(stats.spearmanr(values > 0, score).pvalue, abs=0.03)


def test_a_fact_of_many_levels_counts_by_the_level_that_differs_most():
    levels = np.eye(4)[np.where(Y == 1, np.arange(80) // 2 % 2, 2 + np.arange(80) // 2 % 2)]
    (row,) = judge_family(frame(cap=levels), TARGET).facts
    assert (row["shape"], row["p_corrected"]) == ("value", pytest.approx(0.0005))


def test_both_extremes_of_a_fact_count():
    rng = np.random.default_rng(1)
    cause = rng.normal(size=80)
    y = (np.abs(cause) > np.median(np.abs(cause))).astype(float)
    tests = judge_family(frame(gain=cause, drift=rng.normal(size=80)), y[:, None])
    assert tests.found == ["gain"]
    assert tests.facts[0]["shape"] == "extremes"
    assert distance_from_median(np.array([5.0, 1.0, 3.0])).tolist() == [2.5, 2.5, 1.0]


def test_two_facts_that_count_only_jointly_are_found_as_a_pair():
    rng = np.random.default_rng(2)
    a, b, c = rng.normal(size=(3, 80))
    tests = judge_family(frame(a=a, b=b, c=c), (a * b > 0)[:, None].astype(float))
    assert [pair["variables"] for pair in tests.pairs] == [["a", "b"]]
    assert tests.found == ["a", "b"]
    assert min(row["p_corrected"] for row in tests.facts) > FACT_ALPHA


def test_the_statistic_of_a_pair_is_hsic_with_a_product_kernel():
    rng = np.random.default_rng(3)
    a, b = (Fact(rng.normal(size=(20, 1)), ("",)).by_rank(_waves) for _ in range(2))
    kernel = (a @ a.T) * (b @ b.T)
    columns = products(a, b)
    assert columns @ columns.T == pytest.approx(kernel)
    y = rng.permutation(np.arange(20) % 2).astype(float)
    centre = np.eye(20) - 1 / 20
    hsic = np.trace(kernel @ centre @ np.outer(y, y) @ centre)
    plain = ((columns - columns.mean(axis=0)).T @ (y - y.mean())) ** 2
    assert plain.sum() == pytest.approx(hsic)
    assert (_standardised(columns) ** 2).sum(axis=0) == pytest.approx(np.ones(9))


def test_without_association_a_family_is_wrong_as_often_as_its_level_says():
    rng = np.random.default_rng(4)
    wrong, p = 0, []
    for seed in range(120):
        facts = rng.lognormal(size=(30, 4))
        target = (np.arange(30) % 2 == 0)[:, None].astype(float)
        tests = judge_family(
            frame(**{f"f{i}": facts[:, i] for i in range(4)}),
            target,
            n_permutations=199,
            seed=seed,
        )
        wrong += bool(tests.found)
        p += [row["p"] for row in tests.facts]
    assert wrong <= 7  # 3 are expected; more than 7 have a probability of 1 %
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.04)


def test_a_prediction_that_follows_a_fact_within_the_groups_is_found():
    rng = np.random.default_rng(5)
    fact, noise = rng.normal(size=(2, 80))
    decision = np.abs(fact) + 3 * Y + 0.3 * rng.normal(size=80)
    facts = frame(fact=fact, noise=noise, group=Y * 1.0)
    rows = carried_facts(decision[:, None], facts, [["fact"], ["noise"], ["group"]], Y)
    assert rows[0]["p_holm"] < 0.01
    assert rows[1]["p_holm"] > 0.05
    assert rows[2]["p_holm"] is rows[2]["p"] is None  # it does not vary within the groups
    joint = carried_facts((fact * noise)[:, None], facts, [["fact", "noise"]], Y)
    assert joint[0]["p"] < 0.01


def test_its_p_is_that_of_a_plain_regression_on_permuted_facts():
    rng = np.random.default_rng(6)
    fact = rng.normal(size=80)
    decision = 0.25 * fact + Y + rng.normal(size=80)
    ranks = stats.rankdata(decision)

    def explained(values):
        place = stats.rankdata(values) / 40 - 1
        X = np.column_stack([Y, 1 - Y, place, place**2, place**3])
        return -np.sum((ranks - X @ np.linalg.lstsq(X, ranks)[0]) ** 2)

    permuted = []
    for _ in range(500):
        shuffled = fact.copy()
        for k in (0, 1):
            members = np.flatnonzero(np.equal(Y, k))
            shuffled[members] = rng.permutation(fact[members])
        permuted.append(explained(shuffled))
    (row,) = carried_facts(decision[:, None], frame(fact=fact), [["fact"]], Y)
    plain = np.mean(np.array(permuted) >= explained(fact))
    assert row["p"] == pytest.approx(plain, abs=0.04)
    assert 0.005 < plain < 0.3  # or the test would show nothing


def test_facts_with_the_detectable_auc_are_found_in_four_of_five_studies():
    rng = np.random.default_rng(7)
    auc = detectable_auc(25, 45, 0.01)
    shift = np.sqrt(2) * stats.norm.ppf(auc)
    found = [
        stats.mannwhitneyu(rng.normal(size=25) + shift, rng.normal(size=45)).pvalue <= 0.01
        for _ in range(600)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)
    n = participants_to_find(lambda n: detectable_auc(25 / 70 * n, 45 / 70 * n, 0.01) <= auc)
    assert n == pytest.approx(70, abs=1)


def test_the_detectable_concordance_is_that_of_tables_of_power():
    # Cohen (1988), table 3.4.1: r = 0.30 needs 84 and r = 0.50 needs 28 at 5 %, two-sided, 0.80.
    # Kendall's tau of normal values is 2 / pi asin(r), and the concordance (1 + tau) / 2.
    for n, r in ((84, 0.30), (28, 0.50)):
        expected = 0.5 + np.arcsin(r) / np.pi
        assert detectable_concordance(n, 0.05) == pytest.approx(expected, abs=0.006)


def test_a_fact_of_a_score_to_find_has_the_auc_to_find_between_halves():
    rng = np.random.default_rng(8)
    for concordant, auc in ((CONCORDANCE_TO_FIND, AUC_TO_FIND), (COINCIDE_SCORE, COINCIDE)):
        r = np.sin(np.pi * (concordant - 0.5))
        score, noise = rng.normal(size=(2, 40_000))
        fact = r * score + np.sqrt(1 - r**2) * noise
        assert concordance(fact, score) == pytest.approx(concordant, abs=0.01)
        assert roc_auc_score(score > np.median(score), fact) == pytest.approx(auc, abs=0.015)
    assert concordance_of(r) == pytest.approx(concordant)


def test_a_prediction_of_a_score_that_follows_a_fact_is_found_and_no_harmless_one():
    rng = np.random.default_rng(9)
    found = {"carried": 0, "harmless": 0}
    for seed in range(60):
        score, cause, a, b = rng.normal(size=(4, 80))
        fact = score + cause
        quarters = (stats.rankdata(score) - 0.5) * 4 // 80
        for name, decision in (("carried", fact + a), ("harmless", score + b)):
            (row,) = carried_facts(
                decision[:, None],
                frame(fact=fact),
                [["fact"]],
                quarters,
                score=score,
                n_permutations=199,
                seed=seed,
            )
            found[name] += row["p"] <= 0.05
    assert found["carried"] >= 55
    assert found["harmless"] <= 7  # 3 are expected
