"""The rules of a release at their limits, and its sums by their definitions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from idfsmec import FeatureTable, summarise
from idfsmec.errors import InputError
from idfsmec.federated import release
from idfsmec.solver.sums import name_folds
from tests.federated.cohorts import cohort


def subject_means(table, columns):
    means = table.X[list(columns)].groupby(table.subjects.to_numpy()).mean()
    return means, table.y.groupby(table.subjects.to_numpy()).first()


@pytest.mark.parametrize(("n", "n_folds"), [(60, 1), (110, 2)])
def test_the_sums_of_a_cell_are_those_of_its_participants_one_by_one(n, n_folds):
    table = cohort(n, missing=0.1, epochs=4, seed=n)
    (site,) = summarise(table).sites
    assert site.n_folds == n_folds
    for at, (channel, own) in enumerate(zip(site.channels, site.channel_columns, strict=True)):
        names = [site.columns[j] for j in own]
        means, labels = subject_means(table, names)
        have = means.notna().all(axis=1)
        folds = pd.Series(name_folds(means.index) % site.n_folds, index=means.index)
        # Centred by the mean of participants, and in units of whole powers of two or 1.
        assert_allclose(site.shift[own], means[have].mean(), atol=1e-9)
        counted, among = 0, site.subjects.sum()
        for fold in range(site.n_folds):
            for k, label in enumerate(site.labels):
                cell = means.index[have & (folds == fold) & (labels == label)]
                assert site.count[at, fold, k] == len(cell)
                assert site.subjects[fold, k] == ((folds == fold) & (labels == label)).sum()
                S, Q = np.zeros(len(own)), np.zeros(len(own))
                P = np.zeros((len(own), len(own)))
                for subject in cell:
                    rows = table.X.loc[(table.subjects == subject).to_numpy(), names].to_numpy()
                    rows = (rows - site.shift[own]) / site.scale[own]
                    S += rows.mean(axis=0)
                    Q += rows.mean(axis=0) ** 2
                    P += sum(np.outer(row, row) for row in rows) / len(rows)
                assert_allclose(site.sum_x[fold, k, own], S, atol=1e-9)
                assert_allclose(site.sum_mean_squares[fold, k, own], Q, atol=1e-9)
                assert_allclose(site.sum_xx[at][fold, k], P, atol=1e-9)
                counted += len(cell)
        assert counted == have.sum() <= among == n
        assert channel == names[0].partition("__")[0]


def products(correlation, mean=(3.0, -2.0), sd=(2.0, 5.0), n=10):
    """Sums and products of n values with these moments."""
    mean, sd = np.array(mean), np.array(sd)
    C = np.outer(sd, sd) * [[1.0, correlation], [correlation, 1.0]]
    return n, n * mean, n * (C + np.outer(mean, mean))


@pytest.mark.parametrize(
    ("correlation", "rank"), [(0.0, True), (1 - 1e-7, True), (1 - 2e-9, False), (1.0, False)]
)
def test_products_have_full_rank_where_an_eigenvalue_of_the_correlations_is_above_1e_8(
    correlation, rank
):
    # Of a 2 x 2 correlation matrix the smaller eigenvalue is 1 - r.
    assert release._full_rank(*products(correlation, mean=(0.0, 0.0))) is rank
    assert release._full_rank(*products(correlation, mean=(0.3, -0.2))) is rank


def test_a_constant_feature_has_no_rank_whatever_its_mean():
    n, S, P = products(0.2, mean=(7.0, 1.0), sd=(0.0, 1.0))
    assert not release._full_rank(n, S, P)
    for sd, rank in ((1e-5, True), (1e-7, False)):  # its square, beside a mean square of 1
        assert release._full_rank(*products(0.2, mean=(1.0, 1.0), sd=(sd, 1.0))) is rank


def test_who_holds_more_than_seven_tenths_is_left_out_one_after_the_other():
    def left_out(*columns):
        return release._dominant(np.array(columns, dtype=float).T).tolist()

    assert left_out([7, 1.5, 1.5]) == [False] * 3  # exactly seven tenths
    assert left_out([7.1, 1.5, 1.5]) == [True, False, False]
    assert left_out([100, 7.1, 1.5, 1.5]) == [True, True, False, False]
    assert left_out([1, 1, 1], [1, 0, 0]) == [True, False, False]  # of any feature
    assert left_out([0, 0, 0]) == [False] * 3
    assert left_out([5.0]) == [False]
    assert left_out([5.0, 0.0]) == [True, False]  # and then the one that is left stays


def test_a_participant_dominates_about_the_median_of_the_class():
    """Squares about 0 would be dominated by whoever is far from it, or by no one."""
    table = cohort(30, epochs=1, missing=0.0)
    X = table.X.copy() + 100.0
    far, patients = np.arange(30) == 7, (table.y == "MDD").to_numpy()
    values = X["Cz__beta"].to_numpy().copy()
    centre = np.median(values[patients])
    others = ((values[patients & ~far] - centre) ** 2).sum()
    for share, left_out in ((0.65, {}), (0.75, {"Cz": 1})):
        # The median moves by less than a step between two neighbours.
        X["Cz__beta"] = np.where(far, centre + np.sqrt(share / (1 - share) * others), values)
        assert summarise(FeatureTable(X, table.y, table.subjects)).sites[0].left_out == left_out


def described(values, n=40):
    """Participants of two classes with a fact."""
    table = cohort(n, epochs=1, missing=0.0)
    info = {
        "recordings": [
            {"subject": name, "facts": {"n_channels": value}}
            for name, value in zip(table.subjects, values, strict=True)
            if value is not None
        ]
    }
    return FeatureTable(table.X, table.y, table.subjects, info)


def counts(table, **options):
    rows = summarise(table, **options).sites[0].acquisition
    return {(row["value"], row["label"]): row["count"] for row in rows}


def test_a_fact_of_ten_participants_is_counted_and_of_nine_merged():
    # Even numbers are controls: the first 20 participants are ten of each class.
    ten = counts(described([19] * 20 + [64] * 20))
    assert ten == {(v, k): 10 for v in ("19", "64") for k in ("HC", "MDD")}
    nine = [19] * 18 + [32] * 2 + [64] * 60
    assert counts(described(nine, 80)) == {
        ("64", "HC"): 30, ("64", "MDD"): 30, ("other", "HC"): 10, ("other", "MDD"): 10
    }  # fmt: skip
    assert counts(described([19] * 18 + [64] * 62, 80)) == {}  # nine are left as "other"
    assert counts(described([19] * 40)) == {("19", "HC"): 20, ("19", "MDD"): 20}
    one_sided = [19 if i % 2 else 64 for i in range(40)]
    assert counts(described(one_sided)) == {("19", "MDD"): 20, ("64", "HC"): 20}


def test_whether_columns_follow_is_tested_from_twice_as_many_complete_participants_on():
    """Three channels: seven participants must have them all."""
    table = cohort(60, epochs=1, missing=0.0)
    X = table.X.copy()
    X["O2__beta"] = X["Cz__beta"] - 3 * X["F3__beta"] + 1
    for complete in (6, 7):
        part = X.copy()
        part.iloc[complete:, part.columns.str.startswith("Cz")] = np.nan
        source = release.open_source(FeatureTable(part, table.y, table.subjects), conditions=())
        subjects = release._Subjects(source, b"")
        if complete == 6:
            assert "6 participants have all" in release._refuse_dependent(subjects, [0, 1, 2], ())
        else:
            with pytest.raises(InputError, match="Feature 'beta' of a channel follows"):
                release._refuse_dependent(subjects, [0, 1, 2], ())


def unit_columns(*columns):
    values = np.column_stack(columns)
    values = values - values.mean(axis=0)
    return values / np.linalg.norm(values, axis=0)


def test_columns_are_equal_from_a_correlation_of_one_less_a_millionth_on():
    rng = np.random.default_rng(0)
    a, b = np.linalg.qr(rng.normal(size=(30, 2)) - 0.0)[0].T
    a, b = (v - v.mean() for v in (a, b))
    b -= a * (a @ b) / (a @ a)
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    for gap, equal in ((5e-7, True), (2e-6, False)):
        r = 1 - gap
        for sign in (1, -1):
            close = sign * r * a + np.sqrt(1 - r**2) * b
            unit = unit_columns(rng.normal(size=30), a, rng.normal(size=30), close)
            names = np.array(["Cz__x", "F3__x", "F3__y", "O2__x"])
            same_channel = np.array(["Cz__x", "F3__x", "F3__y", "F3__z"])
            release._refuse_following(unit, same_channel)
            if equal:
                with pytest.raises(InputError, match="'F3__x' and 'O2__x' are the same"):
                    release._refuse_following(unit, names)
            else:
                release._refuse_following(unit, names)


def test_a_feature_of_a_channel_follows_from_others_where_an_eigenvalue_is_below_1e_8():
    rng = np.random.default_rng(1)
    parts = rng.normal(size=(200, 4))
    names = np.array([f"{c}__x" for c in ("F3", "F4", "O1", "O2")])
    for noise, follows in ((1e-5, True), (1e-3, False)):
        # O2 is the sum of the first two: the third is not named.
        sums = parts[:, 0] + parts[:, 1] + noise * parts[:, 3]
        unit = unit_columns(*parts[:, :3].T, sums)
        if follows:
            with pytest.raises(InputError, match=r"Feature 'x' of a channel.*\(F3, F4, O2\)"):
                release._refuse_following(unit, names)
        else:
            release._refuse_following(unit, names)
    # Under another feature's name, too, but not a multiple of the channel's own.
    several = np.array(["F3__x", "F4__x", "O1__x", "F3__y"])
    for noise, follows in ((1e-4, True), (1e-2, False)):
        asymmetry = parts[:, 1] - parts[:, 0] + noise * parts[:, 3]
        unit = unit_columns(*parts[:, :3].T, asymmetry)
        if follows:
            with pytest.raises(InputError, match=r"Column 'F3__y' follows.*\(F3, F4\)"):
                release._refuse_following(unit, several)
        else:
            release._refuse_following(unit, several)
    release._refuse_following(unit_columns(*parts[:, :3].T, 2 * parts[:, 0]), several)
    constant = unit_columns(*parts[:, :3].T, parts[:, 3])
    constant[:, 2:] = 0
    release._refuse_following(constant, names)


@pytest.mark.parametrize(
    ("channels", "noise", "words"),
    [
        (("F3", "F4"), 1e-4, "F3 or F4 follows from those of the other,"),
        (("F3", "F4"), 1e-3, ""),
        (("F3", "F4", "O1"), 1e-7, "F3 or F4 or O1 follows from those of the others,"),
        (("F3", "F4", "O1"), 1e-4, ""),  # nearly as dependent as channels of recordings
    ],
)
def test_channels_are_dependent_together_where_an_eigenvalue_is_below_1e_8_or_1e_11(
    channels, noise, words
):
    """Of two channels or of all: sums of two features, so that no single feature shows it."""
    names = [f"{channel}__{feature}" for channel in channels for feature in "ab"]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, len(names)))
    X[:, -1] = X[:, :-1].sum(axis=1) + noise * rng.normal(size=80)
    X[7, :2] = np.nan
    table = FeatureTable(
        pd.DataFrame(X, columns=names), ["HC", "MDD"] * 40, [f"s{i}" for i in range(80)]
    )
    if words:
        with pytest.raises(InputError, match=words):
            summarise(table)
    else:
        assert summarise(table).sites[0].channels == list(channels)


@pytest.mark.parametrize(("n_several", "hidden"), [(0, False), (9, True), (10, False)])
def test_squares_are_suppressed_where_one_to_nine_have_several_samples(n_several, hidden):
    once = cohort(40, epochs=1, missing=0.0)
    controls = [f"s{2 * i:03d}" for i in range(n_several)]
    patients = [f"s{2 * i + 1:03d}" for i in range(12)]
    more = once.take(once.subjects.isin(controls + patients).to_numpy())
    more = FeatureTable(more.X + 0.7, more.y, more.subjects)
    (site,) = summarise(FeatureTable.concat([once, more])).sites
    assert np.isnan(site.sum_mean_squares).all() == hidden
    assert np.isfinite(site.sum_mean_squares).all() != hidden


def test_as_many_folds_as_lose_no_channel():
    chosen = set()
    for n in (30, 60, 80, 120, 300):
        table = cohort(n, missing=0.0, epochs=1)
        (site,) = summarise(table).sites
        folds, codes = name_folds(sorted(set(table.subjects))), np.arange(n) % 2
        fewest = {k: np.bincount(2 * (folds % k) + codes).min() for k in (4, 2, 1)}
        assert site.n_folds == max(k for k in fewest if fewest[k] >= 10)
        chosen.add(site.n_folds)
    assert chosen == {1, 2, 4}


@pytest.mark.parametrize("kind", ["a score by choice", "numbers as labels", "a file"])
def test_the_values_of_a_score_do_not_leave_a_site_as_labels(tmp_path, kind):
    table = cohort(60)
    number = np.unique(table.subjects.to_numpy(), return_inverse=True)[1]
    scored = FeatureTable(table.X.reset_index(drop=True), number % 12, table.subjects)
    given = {"numbers as labels": scored}.get(kind, scored.with_target("label"))
    if kind == "a file":
        given = given.write(tmp_path / "t.parquet")
    words = "12 different numbers" if kind == "numbers as labels" else "the score label"
    with pytest.raises(InputError, match=f"the labels are {words}, and sites release sums by cl"):
        summarise(given)
