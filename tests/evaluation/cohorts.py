"""Small cohorts with a known truth, for the tests of the evaluation."""

import numpy as np
import pandas as pd

from idfsmec.evaluation.run import table_arrays
from idfsmec.prediction import Method
from idfsmec.selection import IDFSMEC
from idfsmec.table import FeatureTable

#: The proposed method with few settings to tune, for tests of what is done with any method.
OURS = Method("IDFS-MEC", IDFSMEC(tol=1e-4), "proposed", settings={"lam": [1.0, 10.0]})


def make_cohort(
    n_subjects=24,
    n_epochs=4,
    n_channels=4,
    n_features=3,
    effect=1.5,
    subject_spread=0.5,
    seed=0,
    n_classes=2,
):
    """Subjects with epochs alike; the first feature of the first two channels tells the groups."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(n_subjects), n_epochs)
    y = subjects % n_classes
    shape = (n_channels, n_features)
    person = subject_spread * rng.normal(size=(n_subjects, *shape))
    X = person[subjects] + rng.normal(size=(subjects.size, *shape))
    X[:, :2, 0] += effect * y[:, None]
    names = [f"E{v + 1}__f{j + 1}" for v in range(n_channels) for j in range(n_features)]
    return FeatureTable(
        pd.DataFrame(X.reshape(subjects.size, -1), columns=names),
        pd.Series(np.array(["HC", "MDD", "BD"])[y]),
        pd.Series([f"s{subject:02d}" for subject in subjects]),
    )


def comparable(results):
    """Scores and selections without what a clock measured."""
    scores = results.scores.drop(columns="seconds")
    return scores, results.selections


class Computed:
    """A listener that keeps the tasks which were really computed, one experiment apart."""

    def __init__(self):
        self.events = []

    def __call__(self, event):
        self.events.append(event)

    def tasks(self, *experiments):
        """Tasks of these experiments; of all but the rankings of whole tables by default."""
        return [
            event.item[0]
            for event in self.events
            if event.item is not None
            and (event.task in experiments if experiments else event.task != "ranking")
        ]


def make_hospitals(n_sites=3, shift=0.0, labels=None, **options):
    """The same at hospitals of six people each or more, each with an amplifier of its own."""
    table = make_cohort(**options)
    number = table.subjects.str[1:].astype(int).to_numpy()
    code = number * n_sites // (number.max() + 1)
    names = np.array(["Bern", "Lund", "Oslo", "Riga", "Ulm", "York"])
    gain = shift * np.random.default_rng(9).normal(size=(n_sites, table.X.shape[1]))
    return FeatureTable(
        table.X + gain[code],
        table.y if labels is None else pd.Series(labels),
        table.subjects,
        sites=pd.Series(names[code]),
    )


def make_arrays(table=None, name="t"):
    """A table as tasks see it."""
    return table_arrays({name: make_cohort() if table is None else table})[name]
