"""The paper's experiments on a user's own copy of its data, with published values beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pandas as pd

from idfsmec._files import neutralise, replacing
from idfsmec._jobs import count_jobs
from idfsmec.errors import ArgumentError, InputError
from idfsmec.evaluation import Protocol, Results, accuracy, cost, resampling
from idfsmec.evaluation.store import Store
from idfsmec.features import extract_to_file
from idfsmec.paper.experiments import PAPER_RATES, ablation, as_published, sensitivity
from idfsmec.paper.published import published_value
from idfsmec.progress import Listener
from idfsmec.recordings import DATA_SETS, find_recordings
from idfsmec.table import FeatureTable

#: How the paper seems to have done it: it names neither folds nor how settings were chosen, and
#: its flat curves over the missing rate suggest that the classifier saw complete data.
PAPER = Protocol(
    folds="sample",
    gaps="selection",
    tuning="oracle",
    metric="accuracy",
    rates=PAPER_RATES,
    svm_costs=(0.01, 0.1, 1.0),
    clip=None,
)
#: The paper maximises accuracy; chosen by inner folds, with classes that count alike.
HONEST = Protocol(
    rates=PAPER_RATES,
    tuned_by="balanced_accuracy",
    svm_costs=(0.01, 0.1, 1.0),
    n_inner_splits=3,
    clip=None,
)
#: The paper fills with means.
PAPER_FILLER = "mean"
PROTOCOLS = {"honest": HONEST, "paper": PAPER}


def reproduce(
    data_set: str,
    data: str | Path,
    out: str | Path,
    *,
    protocol: Literal["honest", "paper"] | Protocol = "honest",
    methods: list[str] | None = None,
    n_resamples: int = 0,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Run the paper's experiments end to end on a copy of one of its data sets.

    Parameters
    ----------
    data_set : {"modma3", "modma128", "pred-d003"}
        Which data set it is.
    data : path
        Your copy, as released.
    out : path
        Folder for everything: ``table.parquet``, the results of all experiments, and
        ``fig2.csv``, ``fig3.csv``, ``table1.csv``, ``table2.csv`` with published values beside
        measured ones. Called again, it goes on where it stopped.
    protocol : {"honest", "paper"} or Protocol
        ``honest``: new subjects, gaps for the classifier too, settings chosen by inner folds.
        ``paper``: samples of a subject on both sides, gaps for the selector only, the best
        setting on the test.
    methods : list of str, optional
        Methods to compare; all by default.
    n_resamples : int, default=0
        Random halves of the subjects that say how stable the ranking is; see
        :func:`idfsmec.evaluation.resampling`.
    n_jobs, dask, progress, overwrite
        As in :func:`idfsmec.evaluation.accuracy`.

    Returns
    -------
    Results
        Its ``data_set`` says which one was reproduced.
    """
    protocol = find_protocol(protocol)
    out = Path(out)
    tables = {data_set: load_table(data_set, data, out, n_jobs, progress)}
    with Store(out) as store:
        known = store.get_meta("data_set") or data_set
        if known != data_set:
            raise InputError(f"{out} holds a reproduction of {known}; choose another folder")
        store.set_meta("data_set", data_set)
    here: dict[str, Any] = {"progress": progress, "overwrite": overwrite}
    how: dict[str, Any] = {"n_jobs": n_jobs, "dask": dask, "filler": PAPER_FILLER, **here}
    accuracy(tables, out, methods=as_published(methods), protocol=protocol, **how)
    ablation(tables, out, protocol=protocol, **how)
    sensitivity(tables, out, protocol=protocol.with_changes(rates=(0.3,)), **how)
    everything = len(tables[data_set].channels)
    results = cost(tables, out, methods=methods, channel_counts=[everything], **here)
    if n_resamples:
        seed = protocol.seeds[0]
        results = resampling(
            tables, out, n_resamples=n_resamples, seed=seed, n_jobs=n_jobs, **here
        )
    write_tables(results)
    return results


def find_protocol(protocol: str | Protocol) -> Protocol:
    """The protocol of that name; one that is no name is given back."""
    if not isinstance(protocol, str):
        return protocol
    if protocol not in PROTOCOLS:
        raise ArgumentError(
            f"protocol={protocol!r}: choose from {', '.join(PROTOCOLS)}", argument="protocol"
        )
    return PROTOCOLS[protocol]


def load_table(
    data_set: str,
    data: str | Path,
    out: Path,
    n_jobs: int | None = None,
    progress: Listener | None = None,
) -> FeatureTable:
    """Read the feature table of an earlier call, or make it from the recordings.

    Recordings that cannot be used are left out; ``recordings.txt`` names them and says why.
    """
    if data_set not in DATA_SETS:
        raise InputError(f"there is no data set {data_set!r}; choose from {', '.join(DATA_SETS)}")
    path = out / "table.parquet"
    if path.exists():
        return FeatureTable.read(path)
    recordings = find_recordings(data_set, data=data)
    out.mkdir(parents=True, exist_ok=True)
    extraction = extract_to_file(
        recordings, path, n_jobs=count_jobs(n_jobs), on_error="skip", progress=progress
    )
    with replacing(out / "recordings.txt") as (beside,):
        beside.write_text(str(extraction.summary()) + "\n", "utf-8")
    return extraction.table


def write_tables(results: Results) -> None:
    """Write the paper's tables and the numbers behind its figures as CSV files."""
    for name, frame in {
        "fig2": _by_rate(results, "accuracy"),
        "fig3": _grid(results),
        "table1": _by_rate(results, "ablation"),
        "table2": _seconds(results),
    }.items():
        with replacing(results.folder / f"{name}.csv") as (beside,):
            neutralise(frame).to_csv(beside, index=False)


def _by_rate(results: Results, experiment: str) -> pd.DataFrame:
    """Mean accuracy per method and rate, with the published mean over rates beside ours."""
    means = results.mean_scores("accuracy", experiment).reset_index()
    rates = [column for column in means.columns if isinstance(column, float)]
    means["mean"] = means[rates].mean(axis=1)
    means["published mean"] = [
        published_value(experiment, method, table if table == results.data_set else None)
        for table, method in zip(means["table"], means["method"], strict=True)
    ]
    return means.rename(columns={rate: f"{100 * rate:g} % missing" for rate in rates})


def _grid(results: Results) -> pd.DataFrame:
    """Mean accuracy per lambda and gamma: at each k over folds, then the best k."""
    rows = results.scores[results.scores["experiment"] == "sensitivity"]
    cell = ["table", "rate", "lam", "gamma"]
    means = rows.groupby([*cell, "k"], as_index=False)["accuracy"].mean()
    best = means.loc[means.groupby(cell)["accuracy"].idxmax()]
    return best.reset_index(drop=True)


def _seconds(results: Results) -> pd.DataFrame:
    """Median seconds of a selection, beside the published ones."""
    rows = results.scores[results.scores["experiment"] == "cost"]
    cell = ["table", "method", "n_channels"]
    found = rows.groupby(cell, sort=False)["seconds"].median().reset_index()
    found["published seconds"] = [
        published_value("cost", method, table if table == results.data_set else None)
        for table, method in zip(found["table"], found["method"], strict=True)
    ]
    return found
