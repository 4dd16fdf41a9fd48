"""How far rankings from summaries of sites agree with the ranking of the pooled rows.

``python -m benchmarks.quality.federated [TABLE ...]`` splits tables into sites of unequal size and
makes cohorts of 2 to 30 sites with planted features. It also measures what remains possible: to
test, with a subject's rows at hand, whether the subject is in a cell.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from benchmarks._timing import markdown
from idfsmec import IDFSMEC, FeatureTable, summarise
from idfsmec.federated import Summary


def main() -> None:
    """Print both tables and the membership test."""
    warnings.simplefilter("ignore")
    print(markdown(["sites", "first 20 shared", "planted, pooled", "planted, sites"], planted()))
    for name in sys.argv[1:]:
        print(f"\n{name}\n\n{markdown(['split', 'first 20 shared'], public(name))}")
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
    columns = [f"C{v}__f{j}" for v in range(10) for j in range(8)]
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


if __name__ == "__main__":
    main()
