"""Writes a results folder from a real, small comparison of selectors on a simulated table."""

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_selection import f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.neighbors import NearestCentroid
from sklearn.svm import LinearSVC

from idfsmec import IDFSMEC
from idfsmec.evaluation import chance_bands
from idfsmec.missing import make_gaps
from idfsmec.solver import channel_weights
from idfsmec.table import FeatureTable

FEATURES = ("ap_theta", "ap_alpha", "de_beta", "hjorth_mobility", "spectral_entropy", "skewness")


def simulate(channels, n_features=6, n_subjects=36, n_epochs=4, labels=("HC", "MDD"), seed=0):
    """Subjects with epochs; the first third of the channels tells the groups apart."""
    rng = np.random.default_rng(seed)
    features = FEATURES[:n_features]
    groups = np.arange(n_subjects) % len(labels)
    n_informative = max(1, len(channels) // 3)
    trait = rng.normal(size=(n_subjects, len(channels), n_features))
    shift = rng.normal(1.1, 0.2, size=(len(labels), n_informative, 2)) * np.array(
        [(-1) ** c * (1 + c / 2) for c in range(len(labels))]
    ).reshape(-1, 1, 1)
    trait[:, :n_informative, :2] += shift[groups]
    X = np.repeat(trait, n_epochs, axis=0)
    X = X + rng.normal(scale=1.2, size=X.shape)
    X[rng.random(X.shape[:2]) < np.linspace(0, 0.2, len(channels))] = np.nan
    columns = [f"{channel}__{feature}" for channel in channels for feature in features]
    frame = pd.DataFrame(X.reshape(len(X), -1), columns=columns)
    who = np.repeat([f"sub-{s + 1:02d}" for s in range(n_subjects)], n_epochs)
    return FeatureTable(frame, np.array(labels)[np.repeat(groups, n_epochs)], who)


def _importance(model):
    def rank(X, y):
        fitted = model.fit(X, y)
        weight = getattr(fitted, "feature_importances_", None)
        return np.abs(fitted.coef_).sum(axis=0) if weight is None else weight

    return rank


RIVALS = {
    "ANOVA F": lambda X, y: f_classif(X, y)[0],
    "mutual information": lambda X, y: mutual_info_classif(X, y, random_state=0),
    "random forest": _importance(RandomForestClassifier(30, random_state=0)),
    "random": lambda X, y: np.random.default_rng(len(y)).random(X.shape[1]),
    "all features": lambda X, y: np.ones(X.shape[1]),
    "extra trees": _importance(ExtraTreesClassifier(30, random_state=0)),
    "ridge": _importance(RidgeClassifier()),
    "L1 SVM": _importance(LinearSVC(penalty="l1", C=0.3, dual=False, random_state=0)),
    "logistic": _importance(LogisticRegression(C=0.1)),
    "centroids": lambda X, y: np.ptp(NearestCentroid().fit(X, y).centroids_, axis=0),
    "variance": lambda X, y: X.var(axis=0),
}
ABLATIONS = {
    "IDFS-MEC": {},
    "no redundancy": {"lam": 0.0},
    "no channel weights": {"channel_weighting": False},
    "no indicator": {"missing_indicator": False},
    "no correction": {"missing_correction": None},
}


@dataclass
class Plan:
    """What to compare; small enough for a test by default."""

    tables: dict = field(default_factory=lambda: {"cohort": simulate(CHANNELS_8)})
    methods: tuple = ("IDFS-MEC", "ANOVA F", "ridge", "random", "all features")
    rates: tuple = (0.0, 0.2, 0.4)
    ks: tuple = (3, 6, 12)
    n_splits: int = 3
    experiments: tuple = ("accuracy", "ablation", "sensitivity", "cost")
    lams: tuple = (0.1, 1.0, 10.0)
    gammas: tuple = (1.5, 2.0, 5.0)
    folds: str = "subject"
    tuning: str = "nested"
    metric: str = "balanced_accuracy"


CHANNELS_8 = ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "O1", "O2")


def _fit_score(X_train, y_train, X_test, y_test, order, k, who):
    use = order[:k]
    model = LinearSVC(C=0.1, class_weight="balanced", random_state=0).fit(X_train[:, use], y_train)
    predicted = model.predict(X_test[:, use])
    votes = pd.DataFrame({"who": who, "said": predicted, "true": y_test}).groupby("who")
    decided = votes["said"].agg(lambda s: s.mode()[0])
    truth = votes["true"].first()
    return {
        "accuracy": accuracy_score(y_test, predicted),
        "balanced_accuracy": balanced_accuracy_score(y_test, predicted),
        "f1": f1_score(y_test, predicted, average="macro", zero_division=0.0),
        "roc_auc": np.nan,
        "subject_accuracy": accuracy_score(truth, decided),
        "subject_balanced_accuracy": balanced_accuracy_score(truth, decided),
    }


class _Fold:
    """A fold's data: incomplete for IDFS-MEC, standardised and filled for all others."""

    def __init__(self, table, train, test):
        X = table.X.to_numpy()
        mean, scale = np.nanmean(X[train], axis=0), np.nanstd(X[train], axis=0)
        filled = np.nan_to_num((X - mean) / np.where(scale > 0, scale, 1))
        self.raw, self.columns = table.X.iloc[train], np.array(table.X.columns)
        self.filled, self.y = filled[train], table.y.to_numpy()[train]
        self.filled_test, self.y_test = filled[test], table.y.to_numpy()[test]
        self.who = table.subjects.to_numpy()[test]

        self.fits = {}

    def rank(self, method, gamma=None, **params):
        if method in RIVALS:
            start = perf_counter()
            order = np.argsort(-RIVALS[method](self.filled, self.y), kind="stable")
            return order, perf_counter() - start
        fitted, seconds = self._fit(**params)
        if gamma is None:
            return np.argsort(fitted.ranking_), seconds
        # Every gamma from one fit: only the channels' weights change.
        weights = dict(
            zip(fitted.channel_names_, channel_weights(fitted.objective_, gamma), strict=True)
        )
        scores = fitted.feature_weights_ * [weights[c.rsplit("__", 1)[0]] for c in self.columns]
        return np.argsort(-scores, kind="stable"), seconds

    def _fit(self, **params):
        key = tuple(sorted(params.items()))
        if key not in self.fits:
            start = perf_counter()
            fitted = IDFSMEC(**params, tol=1e-4).fit(self.raw, self.y)
            self.fits[key] = fitted, perf_counter() - start
        return self.fits[key]

    def score(self, order, k, method):
        k = order.size if method == "all features" else min(k, order.size)
        return _fit_score(self.filled, self.y, self.filled_test, self.y_test, order, k, self.who)


def _jobs(plan, rate):
    """Experiment, method and settings; what is costly only where the paper has it."""
    if "accuracy" in plan.experiments:
        yield from (("accuracy", method, {}) for method in plan.methods)
    if "ablation" in plan.experiments and rate > 0:
        yield from (("ablation", name, params) for name, params in ABLATIONS.items())
    if "sensitivity" in plan.experiments and rate == plan.rates[-1]:
        for lam in plan.lams:
            for gamma in plan.gammas:
                yield "sensitivity", "IDFS-MEC", {"lam": lam, "gamma": gamma}
    if "cost" in plan.experiments:
        yield from (("cost", method, {}) for method in plan.methods)


def _run(name, table, plan):
    scores, selections = [], []
    splitter = StratifiedGroupKFold(plan.n_splits, shuffle=True, random_state=0)
    for rate in plan.rates:
        gapped = make_gaps(table, rate, random_state=0) if rate else table
        splits = splitter.split(gapped.X, gapped.y, gapped.subjects)
        for fold, (train, test) in enumerate(splits):
            data = _Fold(gapped, train, test)
            for experiment, method, params in _jobs(plan, rate):
                order, seconds = data.rank(method, **params)
                key = {
                    "experiment": experiment, "table": name, "pattern": "random", "rate": rate,
                    "seed": 0, "fold": fold, "method": method,
                }  # fmt: skip
                if experiment == "accuracy":
                    chosen = list(data.columns[order[: max(plan.ks)]])
                    selections.append(key | {"ranking": chosen})
                ks = plan.ks if experiment != "cost" else plan.ks[:1]
                for k in ks:
                    scores.append(
                        key
                        | {
                            "k": k,
                            "params": json.dumps(params, sort_keys=True),
                            "lam": params.get("lam", np.nan),
                            "gamma": params.get("gamma", np.nan),
                            "chosen": k == ks[len(ks) // 2] and experiment != "sensitivity",
                            "seconds": seconds,
                            "n_train": train.size,
                            "n_test": test.size,
                            "n_channels": len(table.channels),
                        }
                        | data.score(order, k, method)
                    )
    return scores, selections


def _ranking(name, table, selections, k):
    fitted = IDFSMEC(tol=1e-4).fit(table.X, table.y)
    order = np.argsort(fitted.ranking_)
    weight = dict(zip(fitted.channel_names_, fitted.channel_weights_, strict=True))
    own = [s["ranking"][:k] for s in selections if s["method"] == "IDFS-MEC"]
    rows = []
    for rank, column in enumerate(order, start=1):
        title = table.X.columns[column]
        channel, feature = title.rsplit("__", 1)
        rows.append(
            {
                "table": name,
                "rank": rank,
                "channel": channel,
                "feature": feature,
                "score": fitted.scores_[column],
                "channel_weight": weight[channel],
                "feature_weight": fitted.feature_weights_[column],
                "stability": np.mean([title in s for s in own]) if own else np.nan,
            }
        )
    return rows, [float(v) for v in fitted.objective_history_]


def _describe(table):
    gaps = (~table.observed).groupby(table.subjects.to_numpy()).mean()
    return {
        "channels": table.channels,
        "features": table.features,
        "n_samples": len(table),
        "n_subjects": int(table.subjects.nunique()),
        "labels": {str(k): int(v) for k, v in table.y.value_counts().items()},
        "share_missing": float((~table.observed).to_numpy().mean()),
        "montage": None,
        "missing_by_recording": {
            "subjects": [str(name) for name in gaps.index],
            "channels": table.channels,
            "share": gaps.to_numpy().round(4).tolist(),
        },
    }


def write_results(folder, plan=None):
    """Run the comparison and write its files."""
    plan = plan or Plan()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    scores, selections, ranking, convergence = [], [], [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, table in plan.tables.items():
            found, picked = _run(name, table, plan)
            scores += found
            selections += picked
            rows, convergence[name] = _ranking(name, table, picked, plan.ks[len(plan.ks) // 2])
            ranking += rows
    frame = pd.DataFrame(scores)
    frame.to_parquet(folder / "results.parquet")
    frame.to_csv(folder / "results.csv", index=False)
    pd.DataFrame(selections).to_parquet(folder / "selections.parquet")
    pd.DataFrame(ranking).to_csv(folder / "ranking.csv", index=False)
    files = {
        "convergence": convergence,
        "tables": {name: _describe(table) for name, table in plan.tables.items()},
        "protocol": {
            "folds": plan.folds, "gaps": "everywhere", "tuning": plan.tuning,
            "n_splits": plan.n_splits, "n_repeats": 1, "rates": plan.rates, "ks": plan.ks,
            "patterns": ["random"], "metric": plan.metric,
            "chance": {
                name: {
                    metric: band.as_dict()
                    for metric, band in chance_bands(table.y, table.subjects).items()
                }
                for name, table in plan.tables.items()
            },
        },
        "environment": {
            "command": "python -m tests.report.make_results DIR",
            "versions": {"idfsmec": "0.1.0", "numpy": np.__version__, "pandas": pd.__version__},
            "machine": {"cpu_count": 2}, "seeds": [0],
            "start": "2026-11-15T03:00:00", "end": "2026-11-15T03:00:09",
        },
    }  # fmt: skip
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
