"""``idfsmec select``: rank the features and channels of a table, and how stable that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from idfsmec.cli._app import command
from idfsmec.cli._console import say, warnings_as_lines
from idfsmec.cli._options import (
    AnyPath,
    DaskOption,
    HeldOut,
    HeldOutOption,
    check_resamples,
    check_seed,
)
from idfsmec.cli._progress import shown
from idfsmec.cli._ranking import show_ranking, show_stability
from idfsmec.cli._run import warn_of_open_cluster
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    import pandas as pd

    from idfsmec.selection import IDFSMEC, StabilitySelector
    from idfsmec.summaries import Summary
    from idfsmec.table import FeatureTable

if TYPE_CHECKING:  # from Python one name, or several
    AnyPaths = AnyPath | Sequence[AnyPath]
else:
    AnyPaths = list[Path]
TablePaths = Annotated[
    AnyPaths,
    typer.Argument(
        metavar="TABLE",
        help="Feature tables (.parquet, .csv, .csv.gz), folders of Parquet files, and summaries "
        "(.summary) of hospitals, as one.",
    ),
]
Output = Annotated[
    AnyPath, typer.Option("-o", "--output", help="Where to write the ranking, a CSV file.")
]
Count = Annotated[int | None, typer.Option("--k", help="Features to keep; 20 when left out.")]
Lam = Annotated[float, typer.Option(help="Weight of redundancy within a channel, >= 0.")]
Gamma = Annotated[float, typer.Option(help="How evenly channels are weighted, > 1.")]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune",
        help="Choose lam, gamma and (without --k) the number of features by inner folds that "
        "keep subjects together, or with --folds site whole hospitals; from summaries and folders "
        "lam alone.",
    ),
]
Resamples = Annotated[
    int,
    typer.Option(
        help="How stable the ranking is: run on so many random halves of the subjects (even, such "
        "as 100), and add the columns frequency and stable."
    ),
]
Harmonize = Annotated[
    bool,
    typer.Option(
        "--harmonize",
        help="Bring hospitals to one location and scale first, as ComBat does: the sites of a "
        "table, or of summaries each one. Warns where site and label are entangled.",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the halves; nothing else is random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing ranking.")]


@command("select")
def select(
    tables: TablePaths,
    output: Output = Path("ranking.csv"),
    k: Count = None,
    lam: Lam = 1.0,
    gamma: Gamma = 2.0,
    tune: Tune = False,
    folds: HeldOutOption = HeldOut.subject,
    harmonize: Harmonize = False,
    resamples: Resamples = 0,
    seed: Seed = 0,
    force: Force = False,
    dask: DaskOption = None,
) -> pd.DataFrame:
    """Rank the features and channels of a table in which channels may be missing.

    For example::

        idfsmec select table.parquet -o ranking.csv --k 20
        idfsmec select table.csv --tune --resamples 100
        idfsmec select a.summary b.summary our_table.parquet -o ranking.csv
        idfsmec select a.summary b.summary --harmonize
        idfsmec select /shared/folder --dask tcp://10.0.0.1:8786

    Folders of Parquet files are read a few rows at a time. Summaries and folders
    give the ranking that all rows in one table would give. All halves are solved
    in one batch by one process, so there is no --jobs.
    """
    from idfsmec.prediction.harmonizer import harmonize_table
    from idfsmec.selection import channel_frame, ranking_frame

    paths, output = _paths(tables), Path(output)
    _check(output, k, force)
    check_resamples(resamples)
    check_seed(seed)
    if harmonize and tune:
        raise InputError(
            "--tune holds people out, and --harmonize learns from all: idfsmec benchmark and "
            "train harmonize inside their folds."
        )
    if any(path.is_dir() or path.suffix.lower() == ".summary" for path in paths):
        if tune and HeldOut(folds) == HeldOut.site:
            raise InputError("--folds site needs the rows of people, in tables.")
        fit = partial(_fit_sums, k, lam, gamma, tune)
        return _select_by_sums(paths, output, fit, dask, harmonize, halves=resamples > 0)
    if dask is not None:
        raise InputError("--dask sums up folders of Parquet files: give one.")
    path = paths[0]
    with warnings_as_lines():
        read = _read(paths)
    with warnings_as_lines(), _naming(path):
        read = harmonize_table(read) if harmonize else read
        selector = _fit(read, k, lam, gamma, tune, HeldOut(folds))
        features, channels = ranking_frame(selector), channel_frame(selector)
        alive = ~selector.missingness_.set_index("channel")["dead"]
        channels = channels[alive.loc[channels["channel"]].to_numpy()]
        stability = _resample(read, selector, resamples, seed) if resamples else None
    if stability is not None:
        features = _add_frequencies(features, list(read.X.columns), stability)
    _write(features, output)
    show_ranking(features, channels)
    if stability is not None:
        show_stability(stability, int(features["frequency"].notna().sum()))
    say(f"Ranking of {len(features)} features written to {output}.")
    return features


def _paths(tables: AnyPath | Sequence[AnyPath]) -> list[Path]:
    if isinstance(tables, (str, Path)):
        return [Path(tables)]
    return [Path(table) for table in tables]


def _read(paths: list[Path]) -> FeatureTable:
    from idfsmec.table import FeatureTable

    read = [FeatureTable.read(path) for path in paths]
    return read[0] if len(read) == 1 else FeatureTable.concat(read)


def _write(features: pd.DataFrame, output: Path) -> None:
    from idfsmec._files import neutralise, replacing

    with replacing(output) as (beside,):
        neutralise(features).to_csv(beside, index=False)


def _select_by_sums(
    paths: list[Path],
    output: Path,
    fit: Callable[[Summary], IDFSMEC],
    dask: str | None,
    harmonize: bool,
    *,
    halves: bool,
) -> pd.DataFrame:
    """Rank from sums alone: what summaries have, and what tables are turned into."""
    from idfsmec.selection import IDFSMEC, StabilitySelector, channel_frame, ranking_frame
    from idfsmec.summaries import Summary, combine, harmonize_summaries, summarise

    warn_of_open_cluster(dask)
    parts = []
    with warnings_as_lines(), shown("summing up"):
        for path in paths:
            shared = path.suffix.lower() == ".summary"
            there = dask if path.is_dir() else None
            parts.append(
                Summary.read(path) if shared else summarise(path, min_people=1, dask=there)
            )
    named = [str(path) for path in paths]
    with warnings_as_lines(), _naming(paths[0]):
        whole = combine(harmonize_summaries(parts, named) if harmonize else parts, named)
        selector = fit(whole)
        features, channels = ranking_frame(selector), channel_frame(selector)
        stability = StabilitySelector(IDFSMEC(lam=selector.lam, gamma=selector.gamma))
        if halves:
            stability.fit_summaries([whole])
            features = _add_frequencies(features, whole.columns, stability)
    _write(features, output)
    show_ranking(features, channels)
    if halves:
        show_stability(stability, int(features["frequency"].notna().sum()))
    people = ", ".join(f"{n} {label}" for label, n in zip(whole.labels, whole.people, strict=True))
    if whole.withheld:
        say(f"{len(whole.withheld)} sums over few people were withheld: {whole.withheld[0]}, ...")
    say(
        f"Ranking of {len(features)} features from sums over {people} of {whole.n_tables} tables "
        f"written to {output}."
    )
    return features


def _fit_sums(k: int | None, lam: float, gamma: float, tune: bool, whole: Summary) -> IDFSMEC:
    from idfsmec.selection import IDFSMEC, IDFSMECCV

    if not tune:
        count: dict[str, Any] = {} if k is None else {"n_features_to_select": k}
        with shown("ranking"):
            return IDFSMEC(lam=lam, gamma=gamma, **count).fit_summaries([whole])
    grid: dict[str, Any] = {} if k is None else {"n_features_to_select": [k]}
    with shown("choosing lam"):
        search = IDFSMECCV(**grid).fit_summaries([whole])
    best = search.best_params_
    rest = f"gamma = {best['gamma']} and the number of features, {best['n_features_to_select']}"
    say(
        f"The loss of channels on people held out chose lam = {best['lam']}. It cannot judge "
        f"{rest}: these were not tuned."
    )
    return search.selector_


def _check(output: Path, k: int | None, force: bool) -> None:
    from idfsmec._files import check_writable

    check_writable(output)
    if output.is_dir():
        raise InputError(f"{output} is a folder; give the name of a file with -o.")
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: a ranking is written as CSV; give a name that ends in .csv.")
    if output.exists() and not force:
        raise InputError(f"{output} exists; give another name with -o, or --force to replace it.")
    if k is not None and k < 1:
        raise InputError(f"--k must be at least 1, got {k}.")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in what is wrong with its content; a bad option is no fault of the file."""
    from idfsmec._validation import InvalidParameterError

    try:
        yield
    except InvalidParameterError as error:
        raise InputError(str(error)) from error
    except ValueError as error:
        raise InputError(f"{path}: {error}", argument=getattr(error, "argument", None)) from error


def _fit(
    table: FeatureTable, k: int | None, lam: float, gamma: float, tune: bool, folds: HeldOut
) -> IDFSMEC:
    from idfsmec.prediction import ChannelImputer
    from idfsmec.selection import IDFSMEC, IDFSMECCV

    if not tune:
        with shown("ranking"):
            count: dict[str, Any] = {} if k is None else {"n_features_to_select": k}
            return IDFSMEC(table.column_channels, lam=lam, gamma=gamma, **count).fit(
                table.X, table.y, groups=table.subjects
            )
    grid: dict[str, Any] = {} if k is None else {"n_features_to_select": [k]}
    if folds == HeldOut.site:
        from idfsmec.evaluation import make_folds

        grid["cv"] = make_folds(table.y, table.subjects, "site", sites=table.sites)
    with shown("choosing lam, gamma and the number of features") as progress:
        grid |= {"imputer": ChannelImputer(), "progress": progress}
        search = IDFSMECCV(table.column_channels, **grid)
        search.fit(table.X, table.y, groups=table.subjects)
    best = ", ".join(f"{name} = {value}" for name, value in search.best_params_.items())
    say(
        f"Inner folds chose {best} (log loss by person {-search.best_score_:.3f}, "
        "optimistic: the best of the grid)."
    )
    return search.selector_


def _resample(
    table: FeatureTable, selector: IDFSMEC, n_resamples: int, seed: int
) -> StabilitySelector:
    """Run the selector, with its settings, on halves of the subjects."""
    from idfsmec.selection import IDFSMEC, StabilitySelector

    stability = StabilitySelector(
        IDFSMEC(lam=selector.lam, gamma=selector.gamma),
        channels=table.column_channels,
        n_resamples=n_resamples,
        random_state=seed,
    )
    with shown(f"{n_resamples} halves of the subjects") as progress:
        stability.set_params(progress=progress)
        return stability.fit(table.X, table.y, groups=table.subjects)


def _add_frequencies(
    features: pd.DataFrame, names: Sequence[str], stability: StabilitySelector
) -> pd.DataFrame:
    """Say of every feature how often halves selected it, and whether that is often enough."""
    import pandas as pd

    from idfsmec.table.columns import join_columns

    columns = pd.Index(join_columns(features["channel"], features["feature"]))
    places = pd.Index(names).get_indexer(columns)
    dead = features["channel"].isin(stability.channel_names_[stability.dead_channels_])
    frequency = pd.Series(stability.frequencies_[places]).mask(dead)
    return features.assign(frequency=frequency, stable=stability.support_[places])
