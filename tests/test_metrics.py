import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import softmax
from sklearn import metrics
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from idfsmec.metrics import (
    CRITERIA,
    METRICS,
    auc,
    auc_by_fold,
    auc_from_ranks,
    auc_interval,
    concordance,
    concordance_interval,
    diagnostic_scores,
    fixed_auc,
    fold_interval,
    holm,
    majority,
    net_benefit,
    score_decisions,
    score_each,
    score_grades,
    wilson_interval,
)


@given(n_classes=st.integers(2, 4), n=st.integers(12, 60), seed=st.integers(0, 10**6))
def test_scores_agree_with_scikit_learn(n_classes, n, seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    decisions = rng.normal(size=(n, n_classes)).round(1)  # rounding makes ties
    if n_classes == 2:
        decisions[:, 0] = -decisions[:, 1]
    predicted = decisions.argmax(axis=1)
    scores = score_decisions(decisions, y, np.arange(n))
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert scores["balanced_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(y, predicted)
    )
    assert scores["f1"] == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
    auc = [metrics.roc_auc_score(y == c, decisions[:, c]) for c in range(n_classes)]
    assert scores["roc_auc"] == pytest.approx(np.mean(auc))
    # Everyone is a subject of one sample here.
    assert scores["subject_accuracy"] == pytest.approx(scores["accuracy"])


def test_a_subject_is_decided_by_most_of_its_samples():
    decisions = np.array([[2.0, 0.0], [0.0, 0.1], [0.0, 0.1], [0.0, 1.0], [3.0, 0.0]])
    true, predicted = majority(decisions, np.array([1, 1, 1, 0, 0]), np.array([5, 5, 5, 9, 9]))
    assert true.tolist() == [1, 0]
    assert predicted.tolist() == [1, 0]  # the second by the stronger decision: one to one


def test_auc_is_nan_where_a_class_is_absent():
    scores = score_decisions(np.eye(2)[[0, 0, 1]], np.array([0, 0, 0]), np.arange(3))
    assert np.isnan(scores["roc_auc"])
    assert scores["balanced_accuracy"] == pytest.approx(2 / 3)


@given(n_classes=st.integers(2, 4), seed=st.integers(0, 10**6), slope=st.sampled_from([1.0, 2.0]))
def test_scores_by_the_mean_decision_of_a_person_agree_with_scikit_learn(n_classes, seed, slope):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=20)])
    decisions = rng.normal(size=(3, y.size, n_classes))
    if n_classes == 2:
        decisions[..., 0] = -decisions[..., 1]
    found = score_decisions(
        decisions.reshape(-1, n_classes),
        np.tile(y, 3),
        np.tile(np.arange(y.size), 3),
        CRITERIA,
        slope,
    )
    mean = decisions.mean(axis=0)
    weights = 1 / np.bincount(y)[y]
    loss = metrics.log_loss(y, softmax(slope * mean, axis=1), sample_weight=weights)
    assert found["subject_neg_log_loss"] == pytest.approx(-loss)
    auc = [metrics.roc_auc_score(y == c, mean[:, c]) for c in range(n_classes)]
    assert found["subject_roc_auc"] == pytest.approx(np.mean(auc))


def test_the_log_loss_counts_only_classes_that_are_there():
    scores = score_decisions(
        np.zeros((3, 2)), np.zeros(3, dtype=np.intp), np.arange(3), ["subject_neg_log_loss"]
    )
    assert scores["subject_neg_log_loss"] == pytest.approx(-np.log(2))


@pytest.mark.parametrize("wanted", METRICS)
def test_a_single_score_is_the_same_as_among_all(wanted):
    rng = np.random.default_rng(2)
    decisions, y, subjects = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), np.arange(40) // 4
    everything = score_decisions(decisions, y, subjects)
    assert list(everything) == list(METRICS)
    assert score_decisions(decisions, y, subjects, [wanted]) == {wanted: everything[wanted]}


@given(n_classes=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_many_decisions_are_scored_like_each_of_them(n_classes, seed):
    rng = np.random.default_rng(seed)
    y, subjects = rng.integers(0, n_classes, 30), rng.integers(5, 14, 30)
    decisions = rng.normal(size=(6, 30, n_classes))
    together = score_each(decisions, y, subjects, CRITERIA, slope=1.5)
    for one, scores in zip(decisions, together, strict=True):
        alone = score_decisions(one, y, subjects, CRITERIA, slope=1.5)
        assert scores == pytest.approx(alone, nan_ok=True, rel=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 3))
def test_aucs_from_values_and_from_ranks_are_those_of_scikit_learn(seed, n_classes):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 20)]
    values = rng.integers(0, 5, (y.size, 3)).astype(float)
    member = (y == np.arange(n_classes)[:, None]).astype(float)
    (by_rank,) = auc_from_ranks(stats.rankdata(values, axis=0), member[None])
    for k in range(n_classes):
        for column in range(3):
            expected = metrics.roc_auc_score(y == k, values[:, column])
            assert by_rank[k, column] == pytest.approx(expected)
            assert auc(values[:, column], y == k) == pytest.approx(expected)


class TestFixedAuc:
    @pytest.mark.parametrize(("n_in", "is_bounded"), [(16, False), (5, True)])
    def test_it_is_wilsons_with_delongs_variance_and_welchs_df(self, n_in, is_bounded):
        rng = np.random.default_rng(3)
        values = np.r_[rng.normal(size=17), rng.normal(0.8, 2.0, n_in)].round(1)  # with ties
        y = np.repeat([False, True], [17, n_in])
        pairs = np.subtract.outer(values[y], values[~y])
        won = (pairs > 0) + (pairs == 0) / 2
        placed, others = won.mean(axis=1), won.mean(axis=0)
        error = np.hypot(stats.sem(placed), stats.sem(others))
        df = stats.ttest_ind(placed, others, equal_var=False).df
        value, *ends = fixed_auc(values, y)
        assert value == pytest.approx(metrics.roc_auc_score(y, values))
        most = 2 * n_in  # the smaller class
        shrunk = (value * most + 1) / (most + 2)
        n = shrunk * (1 - shrunk) / error**2
        assert (n > most) == is_bounded
        n = min(n, most)
        for end in ends:  # Wilson: where the distance is t standard errors of this end
            distance = stats.t.ppf(0.975, df) * np.sqrt(end * (1 - end) / n)
            assert abs(value - end) == pytest.approx(distance)

    def test_without_error_between_the_classes_it_is_as_of_a_share(self):
        value, low, high = fixed_auc(np.arange(30.0), np.arange(30) >= 20)
        assert (value, high) == (1, 1)
        assert low == pytest.approx(20 / (20 + stats.t.ppf(0.975, 9) ** 2))

    def test_a_class_of_one_has_newcombes_interval_and_a_missing_class_none(self):
        assert fixed_auc(np.arange(5.0), np.arange(5) == 3)[1:] == auc_interval(0.75, 1, 4)
        assert np.isnan(fixed_auc(np.arange(5.0), np.zeros(5, dtype=bool))).all()

    def test_it_holds_the_truth_where_spread_and_sizes_differ(self):
        rng = np.random.default_rng(0)
        y = np.repeat([False, True], [80, 20])
        truth = stats.norm.cdf(1.2 / np.hypot(0.7, 1.4))
        hits = newcombe = 0
        for _ in range(400):
            values = rng.normal(size=100) * np.where(y, 1.4, 0.7) + 1.2 * y
            value, low, high = fixed_auc(values, y)
            hits += low <= truth <= high
            low, high = auc_interval(value, 20, 80)
            newcombe += low <= truth <= high
        assert newcombe / 400 < 0.92 < hits / 400


class TestAucInterval:
    @given(st.floats(0, 1), st.integers(1, 200), st.integers(1, 200))
    def test_it_holds_its_auc_and_turns_with_it(self, value, n_in, n_out):
        low, high = auc_interval(value, n_in, n_out)
        assert 0 <= low <= value <= high <= 1
        turned = auc_interval(1 - value, n_in, n_out)
        assert turned == pytest.approx((1 - high, 1 - low), abs=1e-9)

    def test_it_holds_the_truth_as_often_as_it_says(self):
        rng = np.random.default_rng(0)
        truth, hits = 0.9213, 0  # chance that N(2, 1) is above N(0, 1)
        for _ in range(400):
            values = np.r_[rng.normal(size=15), rng.normal(2.0, 1.0, 15)]
            low, high = auc_interval(auc(values, np.repeat([False, True], 15)), 15, 15)
            hits += low <= truth <= high
        assert hits / 400 > 0.92

    def test_that_of_the_best_of_several_holds_its_truth(self):
        rng = np.random.default_rng(1)
        plain = hits = 0
        for _ in range(400):  # three that tell nothing: the best of them looks like something
            best = max(auc(rng.normal(size=40), np.repeat([False, True], 20)) for _ in range(3))
            low, high = auc_interval(best, 20, 20, n_looks=3)
            hits += low <= 0.5 <= high
            low, high = auc_interval(best, 20, 20)
            plain += low <= 0.5 <= high
        assert plain / 400 < 0.95 <= hits / 400

    def test_an_undefined_auc_has_none(self):
        assert np.isnan(auc_interval(np.nan, 3, 3)).all()
        assert np.isnan(auc_interval(0.5, 0, 3)).all()


def test_the_concordance_is_that_of_somers_and_of_two_classes_the_auc():
    rng = np.random.default_rng(0)
    score, values = rng.integers(0, 5, 40).astype(float), rng.integers(0, 9, 40).astype(float)
    expected = (1 + stats.somersd(score, values).statistic) / 2
    assert concordance(values, score) == pytest.approx(expected)
    classes = score > 2
    assert concordance(values, classes * 1.0) == pytest.approx(roc_auc_score(classes, values))
    assert concordance(np.ones(40), score) == 0.5
    assert np.isnan(concordance(values, np.ones(40)))


def test_the_interval_of_a_concordance_holds_that_of_the_population():
    rng = np.random.default_rng(1)
    r, held = 0.5, 0
    expected = 0.5 + np.arcsin(r) / np.pi
    for _ in range(400):
        score, noise = rng.normal(size=(2, 50))
        value = concordance(r * score + np.sqrt(1 - r**2) * noise, score)
        low, high = concordance_interval(value, 50)
        held += low <= expected <= high
    assert held / 400 == pytest.approx(0.95, abs=0.025)
    # Fieller, Hartley and Pearson (1957): z of tau has the standard deviation 0.661 / (n - 4)^0.5.
    assert np.arctanh(2 * high - 1) - np.arctanh(2 * value - 1) == pytest.approx(
        1.96 * 0.661 / np.sqrt(46), rel=2e-3
    )
    assert np.isnan(concordance_interval(0.7, 4)).all()


@given(n=st.integers(1, 50), data=st.data())
def test_wilsons_interval_is_that_of_scipy(n, data):
    hits = data.draw(st.integers(0, n))
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson_interval(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


class TestFoldInterval:
    def test_a_hand_computed_example_agrees(self):
        # mean 0.8, variance 0.00625, factor 1/5 + 1/4 = 0.45, t(0.975, 4) = 2.776445
        found = fold_interval([0.80, 0.75, 0.85, 0.70, 0.90])
        assert found.mean == pytest.approx(0.8)
        assert found.standard_error == pytest.approx(np.sqrt(0.45 * 0.00625))
        assert found.high - found.mean == pytest.approx(2.776445 * np.sqrt(0.0028125), rel=1e-6)
        assert found.mean - found.low == pytest.approx(found.high - found.mean)

    def test_the_ends_for_a_score_from_0_to_1_are_t_errors_of_a_share_away(self):
        scores = [0.80, 0.75, 0.85, 0.70, 0.90]
        found = fold_interval(scores, 500)
        assert found.standard_error == fold_interval(scores).standard_error
        shrunk = 401 / 502  # Laplace's rule
        n_effective = shrunk * (1 - shrunk) / 0.0028125
        for end in (found.low, found.high):  # Wilson's definition
            assert (end - 0.8) ** 2 == pytest.approx(
                2.776445**2 * end * (1 - end) / n_effective, rel=1e-5
            )

    def test_perfect_folds_leave_room_as_the_share_of_so_many_subjects_does(self):
        found = fold_interval(np.ones((2, 5)), 40)
        assert (found.mean, found.high) == (1.0, 1.0)
        assert found.low == pytest.approx(40 / (40 + 2.776445**2))
        assert fold_interval(np.zeros((2, 5)), 40).high == pytest.approx(1 - found.low)

    def test_repeats_add_no_degrees_of_freedom(self):
        scores = np.random.default_rng(1).normal(size=(200, 10))
        found = fold_interval(scores)
        assert found.degrees_of_freedom == 9
        expected = np.sqrt((1 / 2000 + 1 / 9) * scores.var(ddof=1))
        assert found.standard_error == pytest.approx(expected)
        assert found.high - found.low == pytest.approx(2 * 2.262157 * expected, rel=1e-6)

    def test_a_fold_without_a_score_is_left_out(self):
        found = fold_interval([[0.7, np.nan, 0.9], [0.8, np.nan, 0.6]])
        assert (found.n, found.degrees_of_freedom) == (4, 1)
        assert found == fold_interval([[0.7, 0.9], [0.8, 0.6]])

    def test_it_holds_the_truth_where_folds_correlate_as_the_correction_assumes(self):
        rng = np.random.default_rng(2)
        scores = rng.normal(size=(2000, 1)) * np.sqrt(0.1)
        scores = scores + rng.normal(size=(2000, 10)) * np.sqrt(0.9)
        intervals = [fold_interval(study) for study in scores]
        assert 0.93 < np.mean([ci.low <= 0 <= ci.high for ci in intervals]) < 0.97

    def test_one_fold_has_no_interval(self):
        found = fold_interval([0.7], 40)
        assert found.mean == 0.7
        assert np.isnan([found.low, found.high]).all()

    @pytest.mark.parametrize("values", [[], [np.nan], [np.inf, 0.5], [[[0.5]]]])
    def test_what_is_no_table_of_scores_is_refused(self, values):
        with pytest.raises(ValueError, match="one finite number"):
            fold_interval(values)


def test_the_auc_by_fold_is_that_of_scikit_learn_in_each():
    rng = np.random.default_rng(0)
    y, folds = np.arange(30) % 3, np.arange(30) // 15
    y[folds == 1] = np.arange(15) % 2  # no third class there
    decisions = rng.normal(size=(30, 3))
    first, second = auc_by_fold(decisions, y, folds)
    each = [roc_auc_score(y[:15] == k, decisions[:15, k]) for k in range(3)]
    assert first == pytest.approx(np.mean(each))
    expected = roc_auc_score(y[15:], decisions[15:, 1] - decisions[15:, 0])
    assert second == pytest.approx(expected)
    assert np.isnan(auc_by_fold(decisions[:, :2], np.zeros(30, int), folds)).all()


class TestHolm:
    def test_a_hand_computed_example_agrees(self):
        # sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04, then the running maximum
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    @given(st.lists(st.floats(0, 1), max_size=8))
    def test_it_agrees_with_the_definition(self, p_values):
        p = np.array(p_values)
        adjusted = holm(p)
        for i in range(p.size):
            smaller = [j for j in range(p.size) if (p[j], j) <= (p[i], i)]
            steps = [(p.size - sum((p[k], k) < (p[j], j) for k in range(p.size))) * p[j]
                     for j in smaller]  # fmt: skip
            assert adjusted[i] == pytest.approx(min(1, max(steps)))

    def test_refuses_what_is_no_probability(self):
        with pytest.raises(ValueError, match="between 0 and 1"):
            holm([0.5, np.nan])


@given(counts=st.tuples(*[st.integers(0, 30)] * 4), prevalence=st.floats(0.01, 0.99))
def test_diagnostic_scores_are_bayes_rule_and_lie_in_their_intervals(counts, prevalence):
    hits, misses, alarms, rejections = counts
    ill = np.repeat([True, True, False, False], counts)
    flagged = np.repeat([True, False, True, False], counts)
    scores = diagnostic_scores(ill, flagged, prevalence)
    for score in scores.values():
        assert 0 <= score["low"] <= score["mean"] + 1e-12
        assert score["mean"] - 1e-12 <= score["high"] <= 1 + 1e-12
    assert ("sensitivity" in scores) == (hits + misses > 0)
    if {"PPV", "NPV"} <= set(scores):
        right = prevalence * hits / (hits + misses)
        wrong = (1 - prevalence) * alarms / (alarms + rejections)
        assert scores["PPV"]["mean"] == pytest.approx(right / (right + wrong))
        right = (1 - prevalence) * rejections / (alarms + rejections)
        wrong = prevalence * misses / (hits + misses)
        assert scores["NPV"]["mean"] == pytest.approx(right / (right + wrong))


@pytest.mark.parametrize("counts", [(24, 6, 15, 45), (9, 1, 1, 19), (5, 5, 0, 12), (0, 8, 3, 9)])
def test_predictive_values_end_where_the_ratio_of_shares_solves_the_equation_of_mover(counts):
    """MOVER-R of Newcombe (2016): (p - R q)^2 is the sum of both squared half widths."""
    hits, misses, alarms, rejections = counts
    ill = np.repeat([True, True, False, False], counts)
    scores = diagnostic_scores(ill, np.repeat([True, False, True, False], counts), 0.3)
    n, m = hits + misses, alarms + rejections
    (p, p_low, p_high), (q, q_low, q_high) = (
        (k / of, *wilson_interval(k, of)) for k, of in ((hits, n), (alarms, m))
    )
    ratio = {key: v / (1 - v) * 0.7 / 0.3 if v < 1 else np.inf for key, v in scores["PPV"].items()}
    low, high = ratio["low"], ratio["high"]
    squares = (p - p_low) ** 2 + (low * (q_high - q)) ** 2
    assert (p - low * q) ** 2 == pytest.approx(squares, abs=1e-12)
    if alarms:
        squares = (p_high - p) ** 2 + (high * (q - q_low)) ** 2
        assert (p - high * q) ** 2 == pytest.approx(squares)


def test_grades_have_the_weighted_kappa_of_scikit_learn():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 60)
    predicted = true + rng.normal(0, 1.2, 60)
    nearest = np.clip(np.round(predicted), 0, 3).astype(int)
    found = score_grades(predicted, true, 4)
    expected = cohen_kappa_score(true, nearest, weights="quadratic")
    assert found["grade_kappa"] == pytest.approx(expected)
    cuts = [roc_auc_score(true >= cut, predicted) for cut in (1, 2, 3)]
    assert found["grade_auc"] == pytest.approx(np.mean(cuts))


def test_intervals_of_predictive_values_hold_nineteen_times_in_twenty():
    rng, inside = np.random.default_rng(0), {"PPV": [], "NPV": []}
    ill = np.arange(70) < 30
    for _ in range(2000):
        flagged = rng.random(70) < np.where(ill, 0.8, 0.25)
        scores = diagnostic_scores(ill, flagged, prevalence=0.2)
        for name, true in (("PPV", 0.16 / 0.36), ("NPV", 0.6 / 0.64)):
            inside[name].append(scores[name]["low"] <= true <= scores[name]["high"])
    assert all(0.93 < np.mean(held) < 0.975 for held in inside.values())


def test_shares_of_participants_held_out_have_the_interval_of_fewer_ones():
    """With 1.5 times the variance 30 and 60 participants have the intervals of 20 and 40."""
    ill = np.repeat([True, True, False, False], [24, 6, 15, 45])
    flagged = np.repeat([True, False, True, False], [24, 6, 15, 45])
    found = diagnostic_scores(ill, flagged, 0.3, inflation=1.5)
    few = np.repeat([True, True, False, False], [16, 4, 10, 30])
    of_few = np.repeat([True, False, True, False], [16, 4, 10, 30])
    fewer = diagnostic_scores(few, of_few, 0.3)
    for name, score in fewer.items():
        assert found[name] == pytest.approx(score)
    value = net_benefit(ill, flagged * 1.0, 0.4, 0.3, inflation=1.5)
    assert value == pytest.approx(net_benefit(few, of_few * 1.0, 0.4, 0.3))


def test_net_benefit_weighs_false_positives_by_the_odds_of_the_threshold():
    ill = np.arange(50) < 20
    probability = np.where(np.arange(50) % 5 == 0, 0.3, np.where(ill, 0.9, 0.1))
    value = net_benefit(ill, probability, 0.2, prevalence=0.4)
    assert value["mean"] == pytest.approx(20 / 50 - 6 / 50 * 0.25)
    assert value["all"] == pytest.approx(0.4 - 0.6 * 0.25)
    assert value["low"] < value["mean"] < value["high"] + 1e-12
