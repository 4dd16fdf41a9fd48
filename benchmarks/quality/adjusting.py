"""What adjusting for age mends, and what it does not.

``python -m benchmarks.quality.adjusting --studies 200`` draws studies of 100 and 300 participants
whose patients differ from controls in age, and whose features depend on age: linearly or by a U,
in their mean or in their spread. Age is known exactly or with an error (reliability 0.7 or 0.3).
A classifier, logistic regression or gradient boosting, is trained without adjusting, with the
linear Adjuster, with splines, or learned from controls; the table has its mean AUC on 2000 new
participants. Without an illness effect it should be 0.5; with one, as high as where age is equal
in both groups.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._timing import markdown
from idfsmec.metrics import auc
from idfsmec.prediction import Adjuster

N_FEATURES, N_NEW = 20, 2000
#: How age acts on features, how patients differ in it, reliability of age, illness effect.
CELLS = {
    "linear": ("linear", "older", 1.0, 0.0),
    "linear, reliability 0.7": ("linear", "older", 0.7, 0.0),
    "linear, reliability 0.3": ("linear", "older", 0.3, 0.0),
    "U, patients at both ends": ("U", "both ends", 1.0, 0.0),
    "spread": ("spread", "older", 1.0, 0.0),
    "skewed counts": ("counts", "older", 1.0, 0.0),
    "illness, equal age": ("linear", "equal", 1.0, 0.4),
    "illness, patients older": ("linear", "older", 1.0, 0.4),
}
ADJUSTERS: dict[str, Adjuster | None] = {
    "none": None,
    "linear": Adjuster(),
    "splines": Adjuster(splines=True),
    "linear, from controls": Adjuster(reference=0),
}
CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    "boosting": HistGradientBoostingClassifier(min_samples_leaf=5, max_iter=50),
}


class Population:
    """Participants whose features depend on age, and five of them on the illness."""

    def __init__(self, cell: str, seed: int) -> None:
        self.form, self.groups, self.reliability, self.illness = CELLS[cell]
        self.rng = np.random.default_rng([seed, list(CELLS).index(cell)])
        self.slopes = 0.6 * self.rng.normal(size=N_FEATURES)
        self.effects = np.zeros(N_FEATURES)
        self.effects[self.rng.permutation(N_FEATURES)[:5]] = self.illness

    def draw(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features, classes, and age as it is known."""
        rng, y = self.rng, (np.arange(n) >= n // 2).astype(int)
        age = rng.normal(size=n)
        if self.groups == "older":
            age += y
        elif self.groups == "both ends":
            age = np.where(y == 1, rng.choice([-1.3, 1.3], n) + 0.4 * age, 0.7 * age)
        noise = rng.normal(size=(n, N_FEATURES))
        effect = age[:, None] * self.slopes
        if self.form == "U":
            effect = (age[:, None] ** 2 - 1) * self.slopes
        elif self.form == "spread":
            effect, noise = 0.0, noise * np.exp(0.4 * effect)
        elif self.form == "counts":
            effect, noise = rng.poisson(np.exp(0.5 * effect)), 0 * noise
        X = effect + noise + y[:, None] * self.effects
        error = rng.normal(size=n) * np.sqrt((1 / self.reliability - 1) * age.var())
        return X, y, age + error


def study(cell: str, n: int, seed: int) -> list[dict[str, Any]]:
    """Train on one study with each adjuster and classifier, and score new participants."""
    population, rows = Population(cell, seed), []
    (X, y, age), (new, true, new_age) = population.draw(n), population.draw(N_NEW)
    with threadpool_limits(1):
        for (how, adjuster), (name, model) in itertools.product(
            ADJUSTERS.items(), CLASSIFIERS.items()
        ):
            train, test = X, new
            if adjuster is not None:
                train = adjuster.fit_transform(X, y, covariates=age, groups=np.arange(n))
                test = adjuster.transform(new, covariates=new_age)
            decisions = model.fit(train, y).predict_proba(test)[:, 1]
            score = auc(decisions, true == 1)
            rows.append({"cell": cell, "n": n, "adjusted": how, "model": name, "auc": score})
    return rows


def main() -> None:
    """Print the mean AUC of each cell, with the standard error of the least sure one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    tasks = itertools.product(CELLS, (100, 300), range(options.studies))
    rows = Parallel(n_jobs=options.jobs)(delayed(study)(*task) for task in tasks)
    frame = pd.DataFrame([row for of_study in rows for row in of_study])
    cells = frame.groupby(["model", "cell", "n", "adjusted"], sort=False)["auc"]
    wide = cells.mean().unstack("adjusted").round(2).reset_index()
    print(markdown(list(wide.columns), wide.astype(str).to_numpy().tolist()))
    print(f"standard error of a mean at most {cells.sem().max():.3f}")


if __name__ == "__main__":
    main()
