"""How far rankings from summaries of sites agree with the ranking of the pooled rows.

``python -m benchmarks.quality.federated [TABLE ...]`` splits tables into sites of unequal size and
makes cohorts of 2 to 30 sites with planted features. It also measures what remains possible: to
test, with a subject's rows at hand, whether the subject is in a cell; what limits on the share of
one subject of a sum cost and hide; and how near different subjects are to each other in a ledger.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks._timing import markdown
from idfsmec import IDFSMEC, FeatureTable, summarise
from idfsmec.errors import InputError
from idfsmec.federated import Summary, ledger, release
from idfsmec.federated.streaming import open_source

#: What channels are called: where some participants lack some, only electrodes are released.
ELECTRODES = ("F3", "F4", "C3", "C4", "O1", "O2", "Fz", "Cz", "Pz", "Fp1")


def main() -> None:
    """Print both tables and the membership test."""
    warnings.simplefilter("ignore")
    print(markdown(["sites", "first 20 shared", "planted, pooled", "planted, sites"], planted()))
    for name in sys.argv[1:]:
        print(f"\n{name}\n\n{markdown(['split', 'first 20 shared'], public(name))}")
        print(f"\n{markdown(['columns', 'nearest other, SD', 'taken for another'], near(name))}")
    header = ["noise", "refused", "r with the participant", "r with the class's average"]
    print(f"\n{markdown(header, recomputed())}")
    header = ["rule", *(f"{size} SD: left out, error" for size in (5, 6, 8))]
    header += [f"{name}: left out, first 20 shared" for name in ("simulated", *sys.argv[1:])]
    print(f"\n{markdown(header, dominance(sys.argv[1:]))}")
    print(f"\nmembership test, AUC: {membership():.2f} with the same rows")


def planted(n_seeds: int = 10) -> list[list[str]]:
    """Cohorts of sites that lack channels and have unequal numbers of epochs."""
    rows = []
    for n_sites, size in ((2, 200), (3, 80), (6, 60), (12, 60), (30, 40)):
        shared, found = [], []
        for seed in range(n_seeds):
            tables, truth = cohort(n_sites, size, seed)
            pooled = FeatureTable.concat(tables)
            rows_alone = IDFSMEC().fit(pooled.X, pooled.y, groups=pooled.subjects)
            sites = IDFSMEC().fit_summaries([summarise(table) for table in tables])
            tops = [set(top(selector)) for selector in (rows_alone, sites)]
            shared.append(len(tops[0] & tops[1]) / 20)
            found.append([len(own & truth) / len(truth) for own in tops])
        share = [f"{value:.0%}" for value in np.mean(found, axis=0)]
        rows.append([f"{n_sites} of {size} subjects", f"{np.mean(shared):.0%}", *share])
    return rows


def cohort(n_sites: int, size: int, seed: int) -> tuple[list[FeatureTable], set[str]]:
    """Sites with 1 to 12 epochs per subject; each lacks one of ten channels."""
    rng = np.random.default_rng(seed)
    columns = [f"{name}__f{j}" for name in ELECTRODES for j in range(8)]
    truth = set(rng.choice(columns, 12, replace=False).tolist())
    effect = np.array([0.7 * (column in truth) for column in columns])
    tables = []
    for site in range(n_sites):
        n = rng.integers(1, 13, size)
        subject = np.repeat(np.arange(size), n)
        y = rng.permutation(np.arange(size) % 2)
        means = rng.normal(size=(size, 80)) + np.outer(y, effect)
        X = pd.DataFrame(means[subject] + rng.normal(size=(subject.size, 80)), columns=columns)
        gone = rng.random((size, 10)) < 0.1
        gone[:, rng.integers(10)] = True
        X = X.mask(np.repeat(gone[subject], 8, axis=1))
        names = [f"{site}_{i}" for i in subject]
        tables.append(FeatureTable(X, np.where(y[subject], "MDD", "HC"), names))
    return tables, truth


def top(selector: IDFSMEC, k: int = 20) -> list[str]:
    """The first features."""
    return selector.feature_names_in_[np.argsort(selector.ranking_)[:k]].tolist()


def public(path: str, n_seeds: int = 5) -> list[list[str]]:
    """A table split into two or three sites of unequal size."""
    table = FeatureTable.read(path)
    subjects = np.unique(table.subjects)
    pooled = IDFSMEC().fit(table.X, table.y, groups=table.subjects)
    rows = []
    for shares in ((0.5,), (0.5, 0.8)):
        shared = []
        for seed in range(n_seeds):
            order = np.random.default_rng(seed).permutation(subjects)
            parts = np.split(order, [int(share * order.size) for share in shares])
            sites = [summarise(table.take(table.subjects.isin(part).to_numpy())) for part in parts]
            if not any(site.sites[0].channels for site in sites):
                continue
            found = IDFSMEC().fit_summaries(sites)
            shared.append(len(set(top(pooled)) & set(top(found))) / 20)
        text = f"{np.mean(shared):.0%}" if shared else "nothing is released"
        rows.append([f"{len(shares) + 1} sites", text])
    return rows


def membership(n_seeds: int = 20) -> float:
    """AUC of telling subjects in a cell from others, for somebody who has their rows.

    The score is how much nearer a subject's means are to the cell's than the other cells' mean.
    """
    scores, inside = [], []
    for seed in range(n_seeds):
        (table, other), _ = cohort(2, 60, seed)
        summary: Summary = summarise(table)
        (site,) = summary.sites
        for source, member in ((table, 1), (other, 0)):
            means = source.X.groupby(source.subjects.to_numpy()).mean()
            labels = source.y.groupby(source.subjects.to_numpy()).first()
            for name, row in means.iterrows():
                k = site.labels.index(labels[name])
                n = np.concatenate(
                    [np.full(own.size, c) for own, c in zip(
                        site.channel_columns, site.count[:, :, k].sum(axis=1), strict=True)]
                )  # fmt: skip
                mean = site.shift + site.scale * site.sum_x[:, k].sum(axis=0) / np.maximum(n, 1)
                x = row[list(site.columns)].to_numpy()
                seen = ~np.isnan(x)
                scores.append(float(((x - 0) * mean)[seen].sum()))
                inside.append(member)
    return float(roc_auc_score(inside, scores))


def near(path: str, n_draws: int = 20) -> list[list[str]]:
    """How far subjects are from the nearest other one, as a ledger sees them."""
    table = FeatureTable.read(path)
    means = table.X.groupby(table.subjects.to_numpy()).mean()
    rng, rows = np.random.default_rng(0), []
    for size in (10, 20, 40, means.shape[1]):
        nearest = []
        for _ in range(n_draws if size < means.shape[1] else 1):
            columns = rng.choice(means.shape[1], size, replace=False)
            people = ledger.Participants(means.iloc[:, columns])
            distances = people.distances(people)
            np.fill_diagonal(distances, np.inf)
            nearest.append(distances.min(axis=1))
        low, middle = np.quantile(nearest, (0, 0.5))
        share = np.mean(np.array(nearest) <= ledger.SAME)
        rows.append([str(size), f"{low:.2f} to {middle:.2f} (median)", f"{share:.1%}"])
    return rows


def recomputed(n_seeds: int = 10) -> list[list[str]]:
    """A second release under other names: values with noise, and one subject more."""
    rows = []
    for noise in (0.0, 1e-3, 0.1, 0.2, 0.25, 0.3, 0.5):
        refused, found = 0, []
        for seed in range(n_seeds):
            table, rng = sites(60, 50 + seed), np.random.default_rng(seed)
            values = table.X.to_numpy() + noise * rng.normal(size=table.X.shape)
            renamed = FeatureTable(
                pd.DataFrame(values, columns=table.X.columns),
                table.y.to_numpy(),
                [f"other{i}" for i in range(len(table))],
            )
            joins = (table.subjects == "s1").to_numpy()
            with TemporaryDirectory() as folder, ledger.Ledger(f"{folder}/ledger") as record:
                files = [summarise(table.take(~joins), ledger=record)]
                try:
                    files.append(summarise(renamed, ledger=record))
                except InputError:
                    refused += 1
                    continue
            found.append(recovered(*files, values, table.y.to_numpy()))
        both = [f"{value:.2f}" for value in np.median(found, axis=0)] if found else ["-", "-"]
        rows.append([f"{noise:g} SD", f"{refused} of {n_seeds}", *both])
    return rows


def recovered(first: Summary, second: Summary, values: np.ndarray, y: np.ndarray) -> list[float]:
    """Correlation of the second subject with the difference, and with the class's average."""
    sums = []
    for summary in (first, second):
        (site,) = summary.sites
        k = site.labels.index("MDD")
        sizes = [columns.size for columns in site.channel_columns]
        n = np.repeat(site.count[:, :, k].sum(axis=1), sizes)
        S = site.scale * site.sum_x[:, k].sum(axis=0) + site.shift * n
        sums.append((pd.Series(n, list(site.columns)), pd.Series(S, list(site.columns))))
    (n, S), (m, T) = sums
    one = (m - n) == 1
    truth = pd.Series(values[1] - values.mean(axis=0), list(second.sites[0].columns))
    average = pd.Series(values[y == "MDD"].mean(axis=0) - values.mean(axis=0), truth.index)
    guess = (T - S)[one] - values.mean(axis=0)[one.to_numpy()]
    return [
        float(np.corrcoef(truth[one.index[one]], part)[0, 1])
        for part in (guess, average[one.index[one]])
    ]


# --- limits on the share of one subject ---------------------------------------------------------


def most_share(limit: float, about: np.ndarray) -> np.ndarray:
    """Leave out who holds more than a share of a sum of squares."""
    return leave_out(about, lambda total, first, second: first > limit * total)


def p_percent(p: float, about: np.ndarray) -> np.ndarray:
    """Leave out whom the second largest contributor could compute to p per cent."""
    return leave_out(about, lambda total, first, second: total - first - second < p * first)


def leave_out(about: np.ndarray, dominates: Callable[..., np.ndarray]) -> np.ndarray:
    """Leave out subjects of a cell, one after the other; ``about`` has their squares."""
    left = np.ones(len(about), dtype=bool)
    while left.sum() > 2:
        values = np.where(left[:, None], about, 0.0)
        order = np.sort(values, axis=0)
        dominated = dominates(values.sum(axis=0), order[-1], order[-2]) & (order[-1] > 0)
        if not dominated.any():
            break
        excess = order[-1] / np.maximum(values.sum(axis=0), 1e-300)
        left[values[:, np.where(dominated, excess, -1.0).argmax()].argmax()] = False
    return ~left


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda about: np.zeros(len(about), dtype=bool),
    **{f"share of {limit:.0%}": partial(most_share, limit) for limit in (0.5, 0.6, 0.7, 0.8)},
    **{f"p % rule, p = {p:.0%}": partial(p_percent, p) for p in (0.1, 0.3)},
}


@contextmanager
def using(rule: Callable[[np.ndarray], np.ndarray]) -> Iterator[None]:
    """Release with another rule for subjects who hold most of a sum."""
    usual = release._dominant  # noqa: SLF001 - what is compared
    release._dominant = rule  # noqa: SLF001
    try:
        yield
    finally:
        release._dominant = usual  # noqa: SLF001


def dominance(paths: list[str], n_seeds: int = 10) -> list[list[str]]:
    """What each rule hides of a value of 5, 6 or 8 SD, and what it costs."""
    rows = []
    tables = [FeatureTable.read(path) for path in paths]
    for name, rule in RULES.items():
        cells: list[str] = []
        with using(rule):
            for size in (5.0, 6.0, 8.0):
                errors = [
                    planted_error(n, size, seed) for n in (40, 80, 200) for seed in range(n_seeds)
                ]
                hidden = np.isnan(errors)
                error = f"{np.nanmedian(errors):.0%}" if not hidden.all() else "-"
                cells.append(f"{hidden.mean():.0%}, {error}")
            made = np.mean([agreement(sites(200, seed), 2) for seed in range(n_seeds)], axis=0)
            for share, top_20 in (made, *(agreement(table) for table in tables)):
                cells.append(f"{share:.1%}, {top_20:.0%}")
        rows.append([name, *cells])
    return rows


def sites(n: int, seed: int) -> FeatureTable:
    """Subjects with features of heavy tails (Student's t of five degrees of freedom)."""
    rng = np.random.default_rng(1000 + seed)
    columns = [f"{name}__f{j}" for name in ELECTRODES[:6] for j in range(6)]
    y = np.arange(n) % 2
    X = rng.standard_t(5, size=(n, 36)) / np.sqrt(5 / 3) + np.outer(y, np.arange(36) % 5 == 0)
    return FeatureTable(
        pd.DataFrame(X, columns=columns), np.where(y, "MDD", "HC"), [f"s{i}" for i in range(n)]
    )


def planted_error(n: int, size: float, seed: int) -> float:
    """Relative error of the best estimate of a single value; NaN if its subject is left out."""
    table = sites(n, 10 * seed + 1)
    X = table.X.to_numpy().copy()
    X[1, 8] = X[1::2, 8].mean() + size * X[1::2, 8].std()
    table = FeatureTable(
        pd.DataFrame(X, columns=table.X.columns), table.y.to_numpy(), table.subjects.to_numpy()
    )
    (site,) = summarise(table).sites
    inside, k = 2, site.labels.index("MDD")
    if ELECTRODES[1] not in site.channels or left_out(table)["s1"][1]:
        return float("nan")
    v = site.channels.index(ELECTRODES[1])
    j = site.channel_columns[v][inside]
    counts = site.count[v].astype(float)
    S, P = site.sum_x[..., j], site.sum_xx[v][..., inside, inside]
    fold = int(np.argmax(P[:, k] / counts[:, k]))
    # What is to be expected of the others: moments of the other cells.
    rest = np.ones_like(counts, dtype=bool)
    rest[fold, k] = False
    same = rest & (np.arange(counts.shape[1]) == k)
    mean = S[same].sum() / counts[same].sum() if same.any() else 0.0
    square, others = P[rest].sum() / counts[rest].sum(), counts[fold, k] - 1
    value, grid = (X[1, 8] - site.shift[j]) / site.scale[j], np.linspace(-12, 12, 4001)
    by_sum = (S[fold, k] - grid - others * mean) ** 2 / (others * square)
    by_square = (P[fold, k] - grid**2 - others * square) ** 2 / (others * 4 * square**2)
    return float(abs(grid[np.argmin(by_sum + by_square)] - value) / abs(value))


def left_out(table: FeatureTable) -> dict[str, np.ndarray]:
    """Which channels each subject is left out of."""
    subjects = release._Subjects(open_source(table), b"")  # noqa: SLF001
    subjects.leave_out_dominant(subjects.most_folds(release.MIN_SUBJECTS))
    return dict(zip(subjects.names.tolist(), subjects.left_out, strict=True))


def agreement(table: FeatureTable, n_sites: int = 1) -> tuple[float, float]:
    """Share of subjects and channels left out, and first 20 features shared with the rows."""
    order = np.random.default_rng(0).permutation(np.unique(table.subjects))
    parts = [
        table.take(table.subjects.isin(part).to_numpy()) for part in np.array_split(order, n_sites)
    ]
    share = np.mean([row for part in parts for row in left_out(part).values()])
    released = [summarise(part, electrodes=table.channels) for part in parts]
    if not any(part.sites[0].channels for part in released):
        return float(share), float("nan")
    pooled = IDFSMEC().fit(table.X, table.y, groups=table.subjects)
    found = IDFSMEC().fit_summaries(released)
    return float(share), len(set(top(pooled)) & set(top(found))) / 20


if __name__ == "__main__":
    main()
