"""Attacks that read only what sites release."""

import itertools

import numpy as np
import pandas as pd
import pytest

from idfsmec import IDFSMEC, FeatureTable, Summary, summarise
from idfsmec.errors import InputError
from idfsmec.federated import Ledger
from tests.federated.cohorts import cohort

SITES = [
    # subjects, epochs, features, whether epochs are identical
    (20, 12, 18, False),
    (44, 1, 18, False),
    (60, 3, 25, False),
    (122, 6, 25, False),
    (122, 6, 25, True),
    (300, 1, 18, False),
    (300, 4, 25, True),
]


def site_table(n, epochs, n_features, identical, seed):
    return cohort(
        n,
        epochs=epochs,
        missing=0.1,
        seed=seed,
        features=[f"f{j}" for j in range(n_features)],
        jitter=0.0 if identical else 0.5,
    )


def means_of(table):
    """Mean of every subject and channel, which an attacker wants."""
    return table.X.groupby(table.subjects.to_numpy()).mean()


def directions(products):
    """Orthonormal basis of what products span."""
    values, vectors = np.linalg.eigh(products)
    return vectors[:, values > 1e-9 * values[-1]]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("n", "epochs", "n_features", "identical"), SITES)
def test_products_span_no_subject_and_cells_are_disjoint(n, epochs, n_features, identical, seed):
    """Spans of cells intersect in subjects only if they are proper subspaces."""
    table = site_table(n, epochs, n_features, identical, seed)
    (site,) = summarise(table).sites
    subjects = means_of(table)
    for channel, own, P in zip(site.channels, site.channel_columns, site.sum_xx, strict=True):
        n_cells = site.count[site.channels.index(channel)]
        assert (n_cells >= 10).all()
        # Any union of cells has full rank, so that the intersection of two is everything.
        cells = P.reshape(-1, n_features, n_features)
        for size in (1, 2):
            for chosen in itertools.combinations(cells, size):
                assert directions(sum(chosen)).shape[1] == n_features
        # No eigenvector of a cell, and no difference of two, is a subject's direction.
        values = subjects[list(np.array(site.columns)[own])].to_numpy() - site.shift[own]
        values = values[~np.isnan(values).any(axis=1)]
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        for A, B in itertools.combinations(cells, 2):
            vectors = np.linalg.eigh(A - B)[1]
            assert np.abs(values @ vectors).max() < 0.999


@pytest.mark.parametrize("seed", range(3))
def test_no_combination_of_cells_is_over_few_subjects(seed):
    """Sums with coefficients -1, 0 and 1 over all released cells of a class."""
    table = site_table(300, 3, 18, False, seed)
    (site,) = summarise(table).sites
    counts = site.count.reshape(len(site.channels), -1)
    for row in counts:
        for signs in itertools.product((-1, 0, 1), repeat=row.size):
            used = row[np.array(signs) != 0]
            assert used.size == 0 or used.sum() >= 10  # cells are disjoint


def test_an_extreme_value_does_not_show():
    table = site_table(300, 4, 18, False, 0)
    for size in (300.0, 1e4, 1e8):
        X = table.X.copy()
        X.loc[(table.subjects == "s011").to_numpy(), "Cz__f3"] = size
        (site,) = summarise(FeatureTable(X, table.y, table.subjects)).sites
        at = site.channels.index("Cz")
        own = site.channel_columns[at]
        j = [site.columns[c] for c in own].index("Cz__f3")
        S = site.sum_x[..., own[j]] * site.scale[own[j]] + site.count[at] * site.shift[own[j]]
        # The nearest that a sum comes to the value, if the others are taken to be 0.
        assert np.abs(S / size - 1).min() > 0.05


def test_squares_do_not_show_the_only_subject_with_several_epochs():
    """Products less squares are the variance within subjects: here of a single one."""
    table = cohort(60, epochs=1, missing=0.0)
    more = table.take((table.subjects == "s003").to_numpy())
    more = FeatureTable(more.X + 0.7, more.y, more.subjects)
    (site,) = summarise(FeatureTable.concat([table, more])).sites
    assert np.isnan(site.sum_mean_squares).all()
    several = cohort(60, epochs=6, missing=0.0)
    (site,) = summarise(several).sites
    assert np.isfinite(site.sum_mean_squares).all()


def test_centring_constants_do_not_contain_who_is_suppressed():
    table = cohort(60, missing=0.0)
    X = table.X.copy()
    X.loc[(table.subjects == "s007").to_numpy(), "Cz__beta"] = 1e6
    with_extreme = summarise(FeatureTable(X, table.y, table.subjects)).sites[0]
    without = X.copy()
    lacks = (table.subjects == "s007").to_numpy()
    without.loc[lacks, [c for c in X if c.startswith("Cz__")]] = np.nan
    plain = summarise(FeatureTable(without, table.y, table.subjects)).sites[0]
    np.testing.assert_allclose(with_extreme.shift, plain.shift, atol=1e-9)


# --- several files ------------------------------------------------------------------------------

CHANNELS = ("F3", "F4", "C3", "C4", "O1", "O2")
KNOWN = "release 1 has participants of this one"
WIDE = {"channels": CHANNELS, "features": [f"f{j}" for j in range(8)], "missing": 0.0}


class Site:
    """A site with a ledger: what it releases lies in a folder, which attackers read."""

    def __init__(self, folder, name="site"):
        self.folder, self.name, self.files = folder, name, []

    def release(self, table, key=b"k" * 32, **options):
        with Ledger(self.folder / f"{self.name}.sqlite") as ledger:
            summary = summarise(table, study_key=key, ledger=ledger, **options)
        path = self.folder / f"{self.name}{len(self.files)}.summary"
        self.files.append(summary.write(path))
        return path

    def refusal(self, table, **options):
        """Return why the ledger or the rules refuse a release."""
        with pytest.raises(InputError) as refused:
            self.release(table, **options)
        return str(refused.value)


def without(table, *names):
    return table.take(~table.subjects.isin(names).to_numpy())


def some(table, numbers):
    return table.take(table.subjects.isin([f"s{i:03d}" for i in numbers]).to_numpy())


def changed(table, change=lambda X: X, label=lambda y: y, name=lambda name: name):
    X = change(table.X.reset_index(drop=True).copy())
    return FeatureTable(X, table.y.map(label), table.subjects.map(name), rows=table.rows)


def unions_of_cells(path):
    """For every class and union of folds: numbers of participants and sums by column."""
    (site,) = Summary.read(path).sites
    codes = [site.channels.index(channel) for channel in site.column_channels]
    columns = list(site.columns)
    for k, label in enumerate(site.labels):
        for size in range(1, site.n_folds + 1):
            for folds in itertools.combinations(range(site.n_folds), size):
                n = site.count[codes][:, list(folds), k].sum(axis=1)
                S = site.scale * site.sum_x[list(folds), k].sum(axis=0) + site.shift * n
                whole = folds if size < site.n_folds else "all"
                yield (label, whole), pd.Series(n, columns), pd.Series(S, columns)


def nearest_to_one(files):
    """The mean over the fewest participants that follows, the same union of two files or one.

    Several that are over equally few are averaged.
    """
    unions = [list(unions_of_cells(path)) for path in files]
    means = [(n.min(), S / n) for union in unions for _, n, S in union]
    for ours, theirs in itertools.permutations(unions, 2):
        others = {key: (n, S) for key, n, S in theirs}
        for key, n, S in ours:
            if key in others and (rest := (n - others[key][0]).dropna()).min() > 0:
                means.append((rest.min(), (S - others[key][1]).dropna() / rest))
    fewest = min(n for n, _ in means)
    return pd.concat([mean for n, mean in means if n == fewest], axis=1).mean(axis=1)


def class_average(path, label):
    (site,) = Summary.read(path).sites
    k = site.labels.index(label)
    codes = [site.channels.index(channel) for channel in site.column_channels]
    n = site.count[codes][:, :, k].sum(axis=1)
    return pd.Series(
        site.shift + site.scale * site.sum_x[:, k].sum(axis=0) / n, index=list(site.columns)
    )


def correlations(files, tables, recovered=None):
    """Of what is recovered with each participant, and of the average of the participant's class.

    About the average of all participants of the tables.
    """
    recovered = nearest_to_one(files) if recovered is None else recovered
    whole = FeatureTable.concat(tables) if len(tables) > 1 else tables[0]
    means = means_of(whole)
    labels = whole.y.groupby(whole.subjects.to_numpy()).first()
    truth = (means - means.mean()) / means.std()
    for name, vector in truth.iterrows():
        pair = []
        for guess in (recovered, class_average(files[0], labels[name])):
            guess = ((guess - means.mean()) / means.std()).reindex(vector.index)
            pair.append(np.corrcoef(vector[guess.notna()], guess.dropna())[0, 1])
        yield name, *pair


def assert_nothing_recovered(files, tables):
    """No participant is nearer than by the average of the class, up to chance of 48 columns."""
    found = pd.DataFrame(correlations(files, tables), columns=["name", "files", "average"])
    assert found["files"].mean() < found["average"].mean() + 0.1
    assert found["files"].abs().max() < max(found["average"].abs().max(), 0.6)


def test_the_attack_finds_a_participant_in_releases_of_two_ledgers(tmp_path):
    """What remains possible: ledgers do not know each other, so a site must have one."""
    table = cohort(60, **WIDE)
    first, second = Site(tmp_path, "one"), Site(tmp_path, "two")
    first.release(table)
    second.release(without(table, "s005"))
    found = {name: r for name, r, _ in correlations([*first.files, *second.files], [table])}
    assert found["s005"] > 0.9999


@pytest.mark.parametrize("name", ["FAA", "F4F3", "frontal", "F4-F3"])
def test_a_column_computed_from_others_is_refused_if_a_participant_lacks_one(tmp_path, name):
    table = cohort(60, **WIDE)
    lacks = (table.subjects == "s005").to_numpy()

    def derive(X):
        for feature in WIDE["features"]:
            X[f"{name}__{feature}"] = X[f"F4__{feature}"] - X[f"F3__{feature}"]
        X.loc[lacks, [c for c in X if c.startswith(("F3__", name))]] = np.nan
        return X

    site = Site(tmp_path)
    assert f"No electrode has the name {name}" in site.refusal(changed(table, derive))
    # The site vouches for a name, and is wrong.
    vouched = site.refusal(changed(table, derive), electrodes=[name])
    assert "follows from that of others" in vouched


def test_a_name_with_brackets_is_an_electrode_in_a_condition_only_if_conditions_were_asked_for(
    tmp_path,
):
    table = cohort(60, **WIDE | {"channels": ("F3", "F4", "F4 (minus F3)"), "missing": 0.1})
    assert "No electrode has the name F4 (minus F3)" in Site(tmp_path).refusal(table)


@pytest.mark.parametrize("all_lack_some", [False, True])
def test_an_asymmetry_that_is_a_feature_of_an_electrode_is_refused(tmp_path, all_lack_some):
    """F4 less F3 and less the asymmetry, over those who have them, is who lacks F3."""
    table = cohort(80, **WIDE)

    def derive(X, lacking="s005"):
        if all_lack_some:  # one or two of the other electrodes: few participants have all
            for number, channel in itertools.product(range(80), CHANNELS[2:]):
                if number % 4 == CHANNELS.index(channel) - 2:
                    X.loc[table.subjects == f"s{number:03d}", X.columns.str[:2] == channel] = (
                        np.nan
                    )
        X["F3__asymmetry"] = X["F4__f0"] - X["F3__f0"] if lacking else X["F4__f0"] ** 2
        X.loc[(table.subjects == "s005").array, [c for c in X if c.startswith("F3__")]] = np.nan
        return X

    refused = Site(tmp_path).refusal(changed(table, derive))
    what = "A column of F3 or F4 follows from" if all_lack_some else "Column 'F3__asymmetry'"
    assert what in refused
    Site(tmp_path).release(changed(table, lambda X: derive(X, lacking="")))


def twice(n, seed=0):
    """Two recordings of each participant, and which row is the second one of s005."""
    table = FeatureTable.concat([cohort(n, epochs=1, seed=seed + at, **WIDE) for at in (0, 9)])
    return table, ((table.subjects == "s005") & table.subjects.duplicated()).to_numpy()


def total(X, *channels):
    return sum(X[f"{channel}__f{j}"] for channel in channels for j in range(8))


@pytest.mark.parametrize(
    ("column", "compute", "words"),
    [
        ("FAA__f0", lambda X: X["F4__f0"] - X["F3__f0"], "No electrode has the name FAA"),
        ("F3__asymmetry", lambda X: X["F4__f0"] - X["F3__f0"], "Column 'F3__asymmetry' follows"),
        ("F3__total", lambda X: total(X, "F4") - total(X, "F3"), "A column of F3 or F4 follows"),
        ("F3__region", lambda X: total(X, "F3", "F4", "C3"), "A column of F3 or F4 or C3 follows"),
    ],
)
def test_a_computed_column_is_refused_if_a_participant_lacks_its_channel_in_one_recording(
    tmp_path, column, compute, words
):
    """What is left of the sums is the difference of this participant's two recordings."""
    table, lacks = twice(110)
    X = table.X.assign(**{column: compute(table.X)})
    X.loc[lacks, X.columns.str.startswith(("F3", "FAA"))] = np.nan
    part = X.copy() if column != "F3__region" else X.filter(regex="^F|^C3")
    assert words in Site(tmp_path).refusal(FeatureTable(part, table.y, table.subjects))


def test_a_class_cannot_be_divided_later(tmp_path):
    table, site = cohort(120, **WIDE), Site(tmp_path)
    patients = table.take((table.y == "MDD").to_numpy())
    site.release(patients)
    for part in (patients, without(patients, "s001")):
        answers = np.where(part.subjects.str[-1].isin(["1", "5"]), "responder", "none")
        assert KNOWN in site.refusal(FeatureTable(part.X, answers, part.subjects))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"change": lambda X: X * (1 + 1e-12)},
        {"change": lambda X: X * (1 + 1e-3)},
        {"change": lambda X: X.drop(columns=["O2__f7"])},
        {"change": lambda X: X.rename(columns=lambda name: name.replace("O2", "Oz"))},
        {"change": lambda X: X[X.columns[::-1]]},
        {"change": lambda X: (X - X.mean()) / X.std()},
        {"name": "sub-{}".format},
        {"name": str.upper},
        {"name": lambda name: f"p{int(name[1:]) + 500}"},
        {"label": {"HC": "control", "MDD": "patient"}.get},
        {"label": {"HC": "z", "MDD": "a"}.get},
    ],
)
def test_who_joins_or_withdraws_cannot_be_told_whatever_else_changes(tmp_path, change):
    table = cohort(60, **WIDE)
    for earlier, later in ((without(table, "s005"), table), (table, without(table, "s005"))):
        site = Site(tmp_path, f"site{len(earlier)}")
        site.release(earlier)
        assert "release 1" in site.refusal(changed(later, **change))


def test_women_men_and_all_cannot_be_released(tmp_path):
    table, site = cohort(120, **WIDE), Site(tmp_path)
    sex = [int(name[1:]) // 2 % 2 if name != "s005" else -1 for name in table.subjects]
    site.release(table)
    for value in (0, 1):
        assert KNOWN in site.refusal(table.take(np.array(sex) == value))
    reverse = Site(tmp_path, "reverse")
    for value in (0, 1):
        reverse.release(table.take(np.array(sex) == value))
    assert KNOWN in reverse.refusal(table)
    assert_nothing_recovered(reverse.files, [without(table, "s005")])


def test_four_releases_that_differ_by_many_cannot_leave_one(tmp_path):
    """X, X + A, X + B, X + A + B + p: the last less the middle ones and the first is p."""
    table, site = cohort(120, **WIDE), Site(tmp_path)
    site.release(some(table, range(60)))
    for numbers in ([*range(60), *range(60, 80)], [*range(60), *range(80, 100)], range(101)):
        assert KNOWN in site.refusal(some(table, numbers))


def two_conditions(n, lacking):
    parts = [cohort(n, seed=3, **WIDE), cohort(n, seed=4, **WIDE)]
    rows = [pd.DataFrame({"condition": [k] * len(p)}) for k, p in zip(("eo", "ec"), parts)]  # noqa: B905
    tables = [FeatureTable(p.X, p.y, p.subjects, rows=r) for p, r in zip(parts, rows)]  # noqa: B905
    whole = FeatureTable.concat(tables)
    lacks = (whole.subjects == lacking) & (whole.rows["condition"] == "ec")
    return whole.take(~lacks.to_numpy())


def test_conditions_are_one_release_in_which_nothing_can_be_subtracted(tmp_path):
    table, site = two_conditions(60, "s005"), Site(tmp_path)
    path = site.release(table, conditions=["eo", "ec"])
    for conditions in (["eo"], ["ec"], []):
        assert KNOWN in site.refusal(table, conditions=conditions)
    (eo, ec) = (Summary.read(path).take(conditions=[name]).sites[0] for name in ("eo", "ec"))
    assert eo.count.sum() - ec.count.sum() == len(CHANNELS)
    difference = (eo.scale * eo.sum_x + eo.shift * eo.count.repeat(8, 0).transpose(1, 2, 0)) - (
        ec.scale * ec.sum_x + ec.shift * ec.count.repeat(8, 0).transpose(1, 2, 0)
    )
    recovered = pd.Series(difference.sum(axis=(0, 1)), index=list(eo.columns))
    alone = table.select_conditions(["eo"])
    (r, average) = next(
        (r, average)
        for name, r, average in correlations(
            [Summary.read(path).take(conditions=["eo"]).write(tmp_path / "eo.summary")],
            [alone],
            recovered,
        )
        if name == "s005"
    )
    assert abs(r) < max(abs(average), 0.4)


@pytest.mark.parametrize("compute", [lambda eo, ec: eo - ec, lambda eo, ec: (eo + 3 * ec) / 4])
def test_a_condition_computed_from_others_is_refused_if_a_participant_lacks_it(tmp_path, compute):
    """Also where too few participants have all channels to test these together."""
    eo, ec = (cohort(24, epochs=1, seed=seed, **WIDE) for seed in (3, 4))
    values = {"eo": eo.X, "ec": ec.X, "both": compute(eo.X, ec.X)[(eo.subjects != "s005").array]}
    parts = [
        FeatureTable(
            X.reset_index(drop=True),
            eo.y[eo.subjects.isin(X.index.get_level_values("subject")).array].to_numpy(),
            X.index.get_level_values("subject"),
            rows=pd.DataFrame({"condition": [name] * len(X)}),
        )
        for name, X in values.items()
    ]
    refused = Site(tmp_path).refusal(FeatureTable.concat(parts), conditions=list(values))
    assert "a difference of conditions (F3 (eo), F3 (ec), F3 (both))" in refused


def test_a_computed_condition_is_refused_if_a_participant_lacks_a_sample_of_it(tmp_path):
    (eo, lacks), (ec, _) = twice(40), twice(40, seed=1)
    values = {"eo": eo.X, "ec": ec.X, "react": eo.X - ec.X.to_numpy()}
    parts = []
    for name, X in values.items():
        keep = ~lacks | (name == "eo")
        rows = pd.DataFrame({"condition": [name] * keep.sum()})
        y, subjects = eo.y[keep].to_numpy(), eo.subjects[keep].to_numpy()
        parts.append(FeatureTable(X[keep].reset_index(drop=True), y, subjects, rows=rows))
    refused = Site(tmp_path).refusal(FeatureTable.concat(parts), conditions=list(values))
    assert "conditions (F3 (eo), F3 (ec), F3 (react))" in refused
    two = FeatureTable.concat(parts[:2])
    path = Site(tmp_path, "two").release(two, conditions=["eo", "ec"])
    assert "same participants" in Summary.read(path).sites[0].dependence


@pytest.mark.parametrize("conditions", [["eo"], ["eo", "ec"]])
def test_a_condition_that_was_released_is_known_under_other_names(tmp_path, conditions):
    """Also as the mean of conditions that were released side by side."""
    table, site = two_conditions(60, ""), Site(tmp_path)
    site.release(table, conditions=["eo", "ec"])
    later = without(table.select_conditions(conditions), "s007")
    assert "who thus has two names" in site.refusal(
        changed(later.by_subject(), name=lambda name: f"p{int(name[1:]) + 500}")
    )


def test_recordings_before_and_after_are_known_one_by_one_under_other_names(tmp_path):
    before, after = (cohort(60, seed=seed, **WIDE) for seed in (5, 6))
    site, labels = Site(tmp_path), ["before"] * len(before) + ["after"] * len(after)
    X = pd.concat([before.X, after.X], ignore_index=True)
    site.release(FeatureTable(X, labels, [*before.subjects, *after.subjects]))
    for table in (
        without(before, "s007"),
        FeatureTable(X, before.y.tolist() + after.y.tolist(), [*before.subjects, *after.subjects]),
    ):
        assert "who thus has two names" in site.refusal(changed(table, name="day1-{}x".format))


def test_studies_that_overlap_are_refused_under_any_key(tmp_path):
    table, site = cohort(120, **WIDE), Site(tmp_path)
    site.release(some(table, range(80)))
    assert KNOWN in site.refusal(some(table, range(79, 120)), key=b"j" * 32)
    site.release(some(table, range(80, 120)), key=b"j" * 32)
    assert_nothing_recovered(site.files, [table])


def test_waves_add_up_and_show_no_participant(tmp_path):
    table, site = cohort(120, **WIDE), Site(tmp_path)
    for start in (0, 40, 80):
        site.release(some(table, range(start, start + 40)))
    assert_nothing_recovered(site.files, [table])
    waves = [Summary.read(path) for path in site.files]
    found = IDFSMEC().fit_summaries(waves)
    wanted = IDFSMEC().fit(table.X, table.y, groups=table.subjects)
    np.testing.assert_allclose(found.feature_weights_, wanted.feature_weights_, atol=1e-9)


def test_two_sites_that_collude_learn_of_a_third_what_it_released(tmp_path):
    """From the study's sums they subtract their own: what is left is the third release."""
    tables = [cohort(60, seed=seed, prefix=f"{seed}_", **WIDE) for seed in range(3)]
    sites = [Site(tmp_path, f"site{seed}") for seed in range(3)]
    for site, table in zip(sites, tables, strict=True):
        site.release(table)
    files = [site.files[0] for site in sites]
    pooled = sum(means_of(table).sum() for table in tables)
    rest = pooled - means_of(tables[0]).sum() - means_of(tables[1]).sum()
    released = 30 * (class_average(files[2], "HC") + class_average(files[2], "MDD"))
    np.testing.assert_allclose(rest, released, rtol=1e-9)
    assert_nothing_recovered(files, tables)


def test_harmonized_values_of_the_same_participants_are_refused(tmp_path):
    """Harmonized within the site, and under other names: an affine map of every feature."""
    table, site = cohort(60, **WIDE), Site(tmp_path)
    site.release(table)
    rng = np.random.default_rng(1)
    slope, offset = rng.uniform(0.5, 2.0, 48), rng.normal(size=48)
    other = changed(table, lambda X: X * slope + offset, name="patient-{}".format)
    assert "who thus has two names" in site.refusal(other)
