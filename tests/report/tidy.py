"""Tidy score tables with known numbers."""

import numpy as np
import pandas as pd

from idfsmec.evaluation import Results
from idfsmec.report.data import TableResults
from idfsmec.report.page import table_figures

FAMILIES = {
    name: {"family": family, "label": name}
    for family, names in {
        "proposed": ["IDFS-MEC"],
        "filter": ["mRMR", "CMIM"],
        "sanity": ["random"],
        "ablation": ["no redundancy", "no correction"],
    }.items()
    for name in names
}


def make_scores(values, *, experiment="accuracy", n_folds=4, spread=0.02, **columns):
    """Rows whose mean over folds is given: ``values`` maps (method, rate, k) to it."""
    wobble = spread * np.linspace(-1, 1, n_folds)
    rows = [
        {
            "experiment": experiment, "table": "t", "pattern": "random", "rate": rate, "seed": 0,
            "fold": fold, "method": method, "k": k, "params": "{}", "lam": np.nan,
            "gamma": np.nan, "chosen": True, "accuracy": mean + wobble[fold],
            "balanced_accuracy": mean + wobble[fold],
            "subject_balanced_accuracy": mean + wobble[fold],
            "subject_roc_auc": mean + wobble[fold], "seconds": 0.5, "n_train": 75,
            "n_train_subjects": 15, "n_test": 25, "n_channels": 8,
        }
        | columns
        for (method, rate, k), mean in values.items()
        for fold in range(n_folds)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def two_methods(ours, theirs, **options):
    return make_scores({("IDFS-MEC", 0.0, 5): ours, ("mRMR", 0.0, 5): theirs}, **options)


def fake_results(scores, **changes):
    """Results that hold given scores on one small table, and nothing else."""
    table = {
        "channels": ["F3", "O1"], "features": ["a", "b"], "n_samples": 40, "n_subjects": 20,
        "labels": {"x": 20, "y": 20}, "share_missing": 0.1, "montage": None,
        "missing_by_class": [],
        "missing_by_recording": {"subjects": ["s1"], "channels": ["F3", "O1"], "share": [[0, 0]]},
    }  # fmt: skip
    nothing = pd.DataFrame(columns=["experiment", "table", "pattern", "rate", "method", "ranking"])
    fields = {
        "folder": None,
        "scores": scores,
        "selections": nothing,
        "protocol": {"folds": "subject", "tuning": "nested", "metric": "balanced_accuracy"},
        "environment": {},
        "tables": {"t": table},
        "ranking": pd.DataFrame(
            columns=["table", "rank", "channel", "feature", "score", "channel_weight", "method"]
        ),
        "convergence": {},
        "failures": pd.DataFrame(columns=["method", "traceback"]),
        "methods": {
            name: FAMILIES[name] for name in scores["method"].unique() if name in FAMILIES
        },
    }
    return Results(**(fields | changes))


def draw(results, section, variant="", table="t"):
    """Draw a figure of the page."""
    figures = table_figures(TableResults(results, table))
    return next(
        figure.draw(**view.arguments)
        for figure, view in figures
        if (figure.section, view.variant) == (section, variant)
    )


def texts(ax):
    """Everything written into an axes, its title included."""
    return [text.get_text() for text in ax.texts] + [ax.get_title(loc="left")]


def by_gid(ax, gid):
    """The artists drawn under a name."""
    return [artist for artist in ax.get_children() if artist.get_gid() == gid]
