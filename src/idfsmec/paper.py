"""The paper's values, grids, ablations and protocol, and its reproduction.

The paper: Gong, Dong, Xu, Wei, Liu, Zhuo, "Incomplete Depression Feature Selection with Missing
EEG Channels", arXiv:2511.11651. It uses three data sets: MODMA's wearable of 3 channels, MODMA's
cap of 128, and PRED+CT d003 with 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from idfsmec._files import replacing, write_csv
from idfsmec._parallel import on_cluster
from idfsmec.errors import ArgumentError, InputError
from idfsmec.evaluation import Protocol, Results, accuracy, cost, resampling
from idfsmec.evaluation.protocol import protocol_from
from idfsmec.evaluation.run import ResultsFolder, Tables, run_experiment
from idfsmec.features import extract_to_file
from idfsmec.prediction.methods import (
    METHODS,
    Classifier,
    Imputer,
    Method,
    find_methods,
    lazily,
    settings_grid,
    with_parts,
)
from idfsmec.progress import Listener
from idfsmec.recordings import find_recordings
from idfsmec.selection.defaults import GAMMAS, LAMS
from idfsmec.table import FeatureTable

__all__ = ["ablation", "reproduce", "sensitivity"]

#: The paper's data sets (MODMA 3 channels, PRED+CT d003, MODMA 128 channels): columns of tables.
DATASETS = ("modma3", "pred-d003", "modma128")
#: Seconds per selection (Table 2; MATLAB on a Ryzen 7 4800H).
COST_SECONDS = {
    "mRMR": (0.008, 0.370, 1.484),
    "CMIM": (0.003, 0.093, 0.364),
    "ReliefF": (0.090, 0.284, 1.181),
    "RRCT": (0.139, 4.468, 15.317),
    "MRMSR": (1.288, 39.401, 256.088),
    "PS-NSGA": (1.740, 24.633, 51.938),
    "RFS": (0.017, 0.055, 0.063),
    "FSOR": (0.009, 0.063, 0.066),
    "GRMOR": (0.275, 8.235, 47.173),
    "CD-LSR": (0.014, 6.063, 4461.149),
    "IDFS-MEC": (0.143, 0.682, 6.256),
}
#: Accuracy with a part of the method taken out, averaged over missing rates 10-50 % (Table 1).
ABLATION = {
    "IDFS-MEC": (0.7872, 0.9550, 0.8750),
    "no redundancy": (0.6971, 0.9056, 0.7750),
    "no channel weights": (0.7185, 0.8831, 0.7050),
    "no indicator": (0.7457, 0.9148, 0.8450),
}
#: By experiment; accuracy is that of the whole method (Fig. 2).
_PUBLISHED = {
    "cost": COST_SECONDS,
    "accuracy": {"IDFS-MEC": ABLATION["IDFS-MEC"]},
    "ablation": ABLATION,
}

#: The method of the paper, as the registry calls it.
PROPOSED = "IDFS-MEC"
#: The paper's grid.
PAPER_LAMS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
PAPER_GAMMAS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
#: Missing rates at which the paper compares.
PAPER_RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
#: Numbers of features that the paper compares.
PAPER_COUNTS = tuple(range(10, 101, 10))
#: Where the paper departs from our default: the loss that weighs channels, the scale of lam.
AS_PUBLISHED = {"channel_loss": "in-sample", "lam_scale": "paper"}
#: The paper imputes means.
PAPER_IMPUTER = "mean"
#: How the paper seems to have done it: it names neither folds nor how settings were chosen, and
#: its flat curves over the missing rate suggest that the classifier saw complete data.
PAPER = Protocol(
    folds="sample",
    missing_in="selection",
    tuning="oracle",
    metric="accuracy",
    rates=PAPER_RATES,
    ks=PAPER_COUNTS,
    svm_costs=(0.01, 0.1, 1.0),
    clip=None,
)
#: The paper maximises accuracy; here inner folds choose, and classes count equally.
HONEST = Protocol(
    rates=PAPER_RATES,
    ks=PAPER_COUNTS,
    tuned_by="balanced_accuracy",
    svm_costs=(0.01, 0.1, 1.0),
    n_inner_splits=3,
    clip=None,
)
PROTOCOLS = {"honest": HONEST, "paper": PAPER}


def published(experiment: str, data_set: str | None) -> dict[str, float]:
    """Return the paper's seconds (cost) or accuracies by method; none for other data sets."""
    if data_set not in DATASETS:
        return {}
    column = DATASETS.index(data_set)
    return {method: values[column] for method, values in _PUBLISHED[experiment].items()}


def _ablated(
    name: str, lams: Sequence[float] = LAMS, gammas: Sequence[float] = GAMMAS, **fixed: Any
) -> Method:
    selector = lazily("idfsmec.selection.IDFSMEC", **AS_PUBLISHED, **fixed)
    return Method(name, selector, "ablation", settings=settings_grid(lam=lams, gamma=gammas))


_ABLATED = (
    _ablated("no redundancy", lams=[0.0]),
    # Without channel weights gamma changes nothing.
    _ablated("no channel weights", gammas=[2.0], channel_weighting=False),
    _ablated("no indicator", missing_indicator=False),
    _ablated("no correction", missing_correction=None),
)
for _method in _ABLATED:
    METHODS.add(_method)

#: Names of the whole method and of those with a part taken out.
ABLATIONS = (PROPOSED, *(method.name for method in _ABLATED))


def as_published(methods: Iterable[str | Method] | None = None) -> list[Method]:
    """Find methods by name, as their papers have them: IDFS-MEC's loss and scale of lam, PS-NSGA.

    PS-NSGA judges subsets by all samples, also in inner folds and there as long. A method given
    as such stays as it is.
    """
    changes: dict[str, dict[str, Any]] = {
        PROPOSED: {"estimator": lazily("idfsmec.selection.IDFSMEC", **AS_PUBLISHED)},
        "PS-NSGA": {"estimator": lazily("idfsmec.selection.PSNSGA", random_state=0), "inner": {}},
    }
    return [
        replace(method, **changes.get(method.name, {}))
        if METHODS.get(method.name) is method
        else method
        for method in find_methods(methods)
    ]


def ablation(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    **run_options: Any,
) -> Results:
    """Score IDFS-MEC without one part each: redundancy, channel weights, indicator, correction.

    Parameters are those of :func:`idfsmec.evaluation.accuracy`; by default rates are 10 to 50 %.
    All are as published (:func:`as_published`): the loss on the training samples weighs channels.
    """
    methods = with_parts(as_published(ABLATIONS), imputer, classifier)
    chosen = protocol_from(protocol, Protocol(rates=PAPER_RATES))
    return run_experiment("ablation", tables, out, methods, chosen, **run_options)


def sensitivity(
    tables: Tables,
    out: str | Path | ResultsFolder,
    *,
    lams: Sequence[float] = PAPER_LAMS,
    gammas: Sequence[float] = PAPER_GAMMAS,
    imputer: str | Imputer | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    **run_options: Any,
) -> Results:
    """Score IDFS-MEC on a whole grid of lambda and gamma, without choosing.

    Parameters are those of :func:`idfsmec.evaluation.accuracy`, and the grid (the paper's by
    default). By default there is one missing rate, 30 %.
    """
    (method,) = with_parts(as_published([PROPOSED]), imputer, classifier)
    method = replace(method, settings=settings_grid(lam=lams, gamma=gammas))
    chosen = protocol_from(protocol, Protocol(rates=(0.3,))).with_changes(tuning="grid")
    return run_experiment("sensitivity", tables, out, [method], chosen, **run_options)


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
        ``honest``: new subjects, missing channels for the classifier too, settings chosen by
        inner folds. ``paper``: samples of a subject on both sides, missing channels for the
        selector only, the best setting on the test.
    methods : list of str, optional
        Methods to compare; all by default.
    n_resamples : int, default=0
        Random halves of the subjects that measure how stable the ranking is; see
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
    with on_cluster(dask):
        table = _load_table(data_set, data, out, n_jobs, progress)
    tables = {data_set: table}
    here: dict[str, Any] = {"progress": progress, "overwrite": overwrite}
    common = {"n_jobs": n_jobs, "imputer": PAPER_IMPUTER, **here}
    with on_cluster(dask), ResultsFolder(out, overwrite) as folder:
        known = folder.store.get_meta("data_set") or data_set
        if known != data_set:
            raise InputError(f"{out} holds a reproduction of {known}; choose another folder")
        folder.store.set_meta("data_set", data_set)
        accuracy(tables, folder, methods=as_published(methods), protocol=protocol, **common)
        ablation(tables, folder, protocol=protocol, **common)
        sensitivity(tables, folder, protocol=protocol.with_changes(rates=(0.3,)), **common)
        counts = [len(table.channels)]
        results = cost(tables, folder, methods=methods, channel_counts=counts, **here)
        if n_resamples:
            here |= {"n_resamples": n_resamples, "seed": protocol.seeds[0], "n_jobs": n_jobs}
            results = resampling(tables, folder, **here)
    write_tables(results)
    return results


def find_protocol(protocol: str | Protocol) -> Protocol:
    """Return the protocol of that name; a protocol is returned as it is."""
    if not isinstance(protocol, str):
        return protocol
    if protocol not in PROTOCOLS:
        raise ArgumentError(
            f"protocol={protocol!r}: choose from {', '.join(PROTOCOLS)}", argument="protocol"
        )
    return PROTOCOLS[protocol]


def _load_table(
    data_set: str, data: str | Path, out: Path, n_jobs: int | None, progress: Listener | None
) -> FeatureTable:
    """Read an earlier table, or extract it; ``recordings.txt`` names what is left out."""
    if data_set not in DATASETS:
        raise InputError(f"there is no data set {data_set!r}; choose from {', '.join(DATASETS)}")
    path = out / "table.parquet"
    if path.exists():
        return FeatureTable.read(path)
    recordings = find_recordings(data_set, data=data)
    out.mkdir(parents=True, exist_ok=True)
    extraction = extract_to_file(
        recordings, path, n_jobs=n_jobs, on_error="skip", progress=progress
    )
    with replacing(out / "recordings.txt") as (beside,):
        beside.write_text(str(extraction.summary()) + "\n", "utf-8")
    return extraction.table


def write_tables(results: Results) -> None:
    """Write the paper's tables and the numbers behind its figures as CSV files."""
    scores = results.scores
    # At each k over folds, then the best k.
    rows, cell = scores[scores["experiment"] == "sensitivity"], ["table", "rate", "lam", "gamma"]
    grid = rows.groupby([*cell, "k"], as_index=False)["accuracy"].mean()
    rows = scores[scores["experiment"] == "cost"]
    seconds = rows.groupby(["table", "method", "n_channels"], sort=False)["seconds"].median()
    medians = seconds.reset_index()
    medians["published seconds"] = _published_beside(medians, results, "cost")
    frames = {
        "fig2": _means_by_rate(results, "accuracy"),
        "fig3": grid.loc[grid.groupby(cell)["accuracy"].idxmax()],
        "table1": _means_by_rate(results, "ablation"),
        "table2": medians,
    }
    for name, frame in frames.items():
        write_csv(results.folder / f"{name}.csv", frame)


def _means_by_rate(results: Results, experiment: str) -> pd.DataFrame:
    """Mean accuracy per method and rate, with the published mean over rates beside ours."""
    means = results.mean_scores("accuracy", experiment).reset_index()
    rates = [column for column in means.columns if isinstance(column, float)]
    means["mean"] = means[rates].mean(axis=1)
    means["published mean"] = _published_beside(means, results, experiment)
    return means.rename(columns={rate: f"{100 * rate:g} % missing" for rate in rates})


def _published_beside(rows: pd.DataFrame, results: Results, experiment: str) -> pd.Series:
    """Published values of the reproduced data set; NaN for other tables of the folder."""
    values = published(experiment, results.data_set)
    return rows["method"].map(values).where(rows["table"] == results.data_set)
