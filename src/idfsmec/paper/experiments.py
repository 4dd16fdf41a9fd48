"""The paper's experiments beside the comparison: its method in pieces, and on a grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from idfsmec.evaluation.experiments import with_parts
from idfsmec.evaluation.method import Method, settings_grid
from idfsmec.evaluation.methods import METHODS, find_methods, lazily
from idfsmec.evaluation.parts import Classifier, Filler
from idfsmec.evaluation.protocol import Protocol, protocol_from
from idfsmec.evaluation.results import Results
from idfsmec.evaluation.run import run_experiment
from idfsmec.evaluation.tables import Tables
from idfsmec.progress import Listener
from idfsmec.selection.defaults import GAMMAS, LAMS

#: The method of the paper, as the registry calls it.
PROPOSED = "IDFS-MEC"
#: The paper's grid.
PAPER_LAMS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
PAPER_GAMMAS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
#: Missing rates at which the paper compares.
PAPER_RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
#: What the paper does otherwise than our default: the loss that weighs channels, the scale of lam.
AS_PUBLISHED = {"channel_loss": "in-sample", "lam_scale": "paper"}


def _ablated(
    name: str,
    lams: Sequence[float] = LAMS,
    gammas: Sequence[float] = GAMMAS,
    **fixed: Any,
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
ABLATIONS = (PROPOSED, *(one.name for one in _ABLATED))


def as_published(methods: Iterable[str | Method] | None = None) -> list[Method]:
    """Find methods by name, as their papers have them: IDFS-MEC's loss and scale of lam, PS-NSGA.

    PS-NSGA judges subsets by all samples, also in inner folds and there as long.

    Parameters
    ----------
    methods : iterable of str or Method, optional
        As of :func:`idfsmec.evaluation.accuracy`. A method given as such stays as it is.

    Examples
    --------
    >>> as_published(["IDFS-MEC"])[0].build()
    IDFSMEC(channel_loss='in-sample', lam_scale='paper')
    """
    theirs: dict[str, dict[str, Any]] = {
        PROPOSED: {"selector": lazily("idfsmec.selection.IDFSMEC", **AS_PUBLISHED)},
        "PS-NSGA": {
            "selector": lazily("idfsmec.selection.PSNSGA", random_state=0),
            "inner": {},
            "takes": (250.0, 1.9),
        },
    }
    return [
        replace(one, **theirs.get(one.name, {})) if METHODS.get(one.name) is one else one
        for one in find_methods(methods)
    ]


def ablation(
    tables: Tables,
    out: str | Path,
    *,
    filler: str | Filler | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Take parts out of IDFS-MEC: redundancy, channel weights, indicator, correction.

    Parameters are those of :func:`idfsmec.evaluation.accuracy`; by default rates are 10 to 50 %.
    All are as published (:func:`as_published`): the loss on the training samples weighs channels.
    """
    return run_experiment(
        "ablation",
        tables,
        out,
        with_parts(as_published(ABLATIONS), filler, classifier),
        protocol_from(protocol, Protocol(rates=PAPER_RATES)),
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
        overwrite=overwrite,
    )


def sensitivity(
    tables: Tables,
    out: str | Path,
    *,
    lams: Sequence[float] = PAPER_LAMS,
    gammas: Sequence[float] = PAPER_GAMMAS,
    filler: str | Filler | None = None,
    classifier: str | Classifier | None = None,
    protocol: Protocol | Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    dask: Any = None,
    progress: Listener | None = None,
    overwrite: bool = False,
) -> Results:
    """Score IDFS-MEC on a whole grid of lambda and gamma, without choosing.

    Parameters are those of :func:`idfsmec.evaluation.accuracy`, and the grid (the paper's by
    default). By default there is one missing rate, 30 %.
    """
    (method,) = with_parts(as_published([PROPOSED]), filler, classifier)
    return run_experiment(
        "sensitivity",
        tables,
        out,
        [replace(method, settings=settings_grid(lam=lams, gamma=gammas))],
        protocol_from(protocol, Protocol(rates=(0.3,))).with_changes(tuning="grid"),
        n_jobs=n_jobs,
        dask=dask,
        progress=progress,
        overwrite=overwrite,
    )
