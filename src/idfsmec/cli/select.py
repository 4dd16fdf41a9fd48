"""``idfsmec select``: rank the features and channels of tables, or of summaries of sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import say, show_rows, shown, warnings_as_lines
from idfsmec.cli.options import AnyPath, AnyPaths, Folds, Harmonize
from idfsmec.errors import InputError

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    import pandas as pd

    from idfsmec.selection import IDFSMEC, StabilitySelector
    from idfsmec.table import FeatureTable

N_SHOWN = 10
_SCHEMES = {
    "folds": "on the sites' folds of subjects",
    "sites": "on one site after the other",
    "repeated folds": "on repeated folds of subjects",
}


@command(
    tables=options.argument(
        "TABLE",
        "Feature tables (.parquet, .csv, .csv.gz), folders of Parquet files, and summaries "
        "(.summary) of sites, as one.",
    ),
    output="Where to write the ranking, a CSV file.",
    k="Features to keep; 20 when left out.",
    lam="Weight of redundancy within a channel, >= 0.",
    gamma="How evenly channels are weighted, > 1.",
    tune="Choose lam, gamma and (without --k) the number of features by inner folds; see --folds. "
    "Needs tables.",
    harmonize="Bring sites (hospitals) to one location and scale first, as ComBat does: the sites "
    "of a table, or of summaries each one. Warns where site and label are confounded.",
)
def select(
    tables: AnyPaths,
    output: AnyPath = Path("ranking.csv"),
    k: int | None = None,
    lam: float = 1.0,
    gamma: float = 2.0,
    tune: bool = False,
    folds: Folds | None = None,
    harmonize: Harmonize = None,
    resamples: int = 0,
    seed: int = 0,
    force: bool = False,
) -> pd.DataFrame:
    """Rank the features and channels of a table in which channels may be missing.

    For example::

        idfsmec select table.parquet -o ranking.csv --k 20
        idfsmec select table.csv --tune --resamples 100
        idfsmec select a.summary b.summary our_table.parquet -o ranking.csv
        idfsmec select a.summary b.summary --harmonize all
        idfsmec select folder_of_parquet_files

    Folders of Parquet files are read twice, a few rows at a time. Feature weights
    from summaries and folders are those of all rows in one table, where no site
    suppressed anything. One process solves all halves: there is no --jobs.
    """
    from idfsmec.selection import channel_frame, ranking_frame

    given = options.paths(tables)
    output = options.check_output(output, ".csv", force)
    _check(k, tune, folds, harmonize, resamples, seed)
    harmonize = options.parse_harmonize(harmonize)
    settings: dict[str, Any] = {"lam": lam, "gamma": gamma}
    settings |= {} if k is None else {"n_features_to_select": k}
    stability, table = None, None
    if any(path.is_dir() or path.suffix.lower() == ".summary" for path in given):
        if tune or resamples:
            raise InputError(
                f"{'--tune' if tune else '--resamples'} needs the rows of subjects: it goes with "
                "tables, not with summaries and folders."
            )
        if isinstance(harmonize, str):
            raise InputError(f"--harmonize {harmonize}: summaries are harmonized by all: say so.")
        selector = _select_from_sums(given, settings, harmonize)
    else:
        with warnings_as_lines():
            table = _read(given)
        with warnings_as_lines(), _naming(given[0]):
            selector, stability = _select_from_rows(
                table, settings, tune, folds, harmonize, resamples, seed
            )
    features, channels = ranking_frame(selector), channel_frame(selector)
    dead = selector.missingness_.set_index("channel")["dead"]
    channels = channels[~dead.loc[channels["channel"]].to_numpy()]
    if stability is not None and table is not None:
        features = _add_frequencies(features, list(table.X.columns), stability)
    options.write_csv(features, output)
    _print_ranking(features, channels)
    if stability is not None:
        _print_stability(stability, int(features["frequency"].notna().sum()))
    if table is None:
        _print_study(selector)
    say(f"Ranking of {len(features)} features written to {output}.")
    return features


def _check(
    k: int | None, tune: bool, folds: Any, harmonize: Any, resamples: int, seed: int
) -> None:
    options.check_resamples(resamples)
    options.check_seed(seed)
    if k is not None and k < 1:
        raise InputError(f"--k must be at least 1, got {k}.")
    if options.parse_folds(folds) and not tune:
        raise InputError("--folds are those of --tune: give both, or none.")
    if harmonize and tune:
        raise InputError(
            "--tune holds subjects out, and --harmonize learns from all: idfsmec benchmark and "
            "train harmonize inside their folds."
        )


def _read(given: Sequence[Path]) -> FeatureTable:
    """Read tables, and put several together."""
    from idfsmec.table import FeatureTable

    read = [FeatureTable.read(path) for path in given]
    return read[0] if len(read) == 1 else FeatureTable.concat(read)


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


def _select_from_rows(
    table: FeatureTable,
    settings: dict[str, Any],
    tune: bool,
    folds: Any,
    harmonize: bool | str,
    resamples: int,
    seed: int,
) -> tuple[IDFSMEC, StabilitySelector | None]:
    from idfsmec.prediction.harmonizer import harmonize_table
    from idfsmec.selection import IDFSMEC, StabilitySelector

    table = harmonize_table(table, harmonize) if harmonize else table
    rows = {"X": table.X, "y": table.y, "groups": table.subjects}
    if tune:
        selector = _tune(table, settings, options.parse_folds(folds))
    else:
        with shown("ranking"):
            selector = IDFSMEC(table.column_channels, **settings).fit(**rows)
    if not resamples:
        return selector, None
    stability = StabilitySelector(
        IDFSMEC(lam=selector.lam, gamma=selector.gamma),
        channels=table.column_channels,
        n_resamples=resamples,
        random_state=seed,
    )
    with shown(f"{resamples} halves of the subjects") as progress:
        return selector, stability.set_params(progress=progress).fit(**rows)


def _tune(table: FeatureTable, settings: dict[str, Any], folds: dict[str, Any]) -> IDFSMEC:
    from idfsmec.evaluation import make_folds
    from idfsmec.prediction import ChannelImputer
    from idfsmec.selection import IDFSMECCV

    search: dict[str, Any] = {"imputer": ChannelImputer()}
    if "n_features_to_select" in settings:
        search["n_features_to_select"] = [settings["n_features_to_select"]]
    if "folds" in folds:
        search["cv"] = make_folds(table.y, table.subjects, "site", sites=table.sites)
    elif folds:
        search["cv"] = folds["n_splits"]
    with shown("choosing lam, gamma and the number of features") as progress:
        tuned = IDFSMECCV(table.column_channels, progress=progress, **search)
        tuned.fit(table.X, table.y, groups=table.subjects)
    best = ", ".join(f"{name} = {value}" for name, value in tuned.best_params_.items())
    say(
        f"Inner folds chose {best} (log loss by subject {-tuned.best_score_:.3f}, "
        "optimistic: the best of the grid)."
    )
    return tuned.selector_


def _select_from_sums(given: Sequence[Path], settings: dict[str, Any], harmonize: bool) -> IDFSMEC:
    """Rank from the sums of sites; a table here is a site that suppresses nothing."""
    from idfsmec.federated import Summary, study_of, summarise
    from idfsmec.selection import IDFSMEC

    with warnings_as_lines(), shown("summing up"):
        summaries = [
            Summary.read(path)
            if path.suffix.lower() == ".summary"
            else summarise(path, min_subjects=1, site=path.stem)
            for path in given
        ]
    study_of(summaries, names=[str(path) for path in given])  # names the files that do not fit
    with warnings_as_lines(), shown("ranking"):
        return IDFSMEC(**settings).fit_summaries(summaries, harmonize=harmonize)


def _add_frequencies(
    features: pd.DataFrame, names: Sequence[str], stability: StabilitySelector
) -> pd.DataFrame:
    """Add how often halves selected each feature, and whether that is often enough."""
    import pandas as pd

    wanted = pd.Index(features["channel"] + "__" + features["feature"])
    columns = pd.Index(names).get_indexer(wanted)
    dead = features["channel"].isin(stability.channel_names_[stability.dead_channels_])
    frequency = pd.Series(stability.frequencies_[columns]).mask(dead)
    return features.assign(frequency=frequency, stable=stability.support_[columns])


def _print_ranking(features: pd.DataFrame, channels: pd.DataFrame) -> None:
    """Print the leading features and the heaviest channels."""
    size = next((name for name in ("hedges_g", "eta_squared") if name in features), None)
    headings = {"rank": "right", "channel": "left", "feature": "left", "score": "right"}
    if size is not None:
        headings |= {"direction": "left", size.replace("_", " "): "right"}
    if "frequency" in features:
        headings |= {"in halves": "right", "stable": "left"}
    rows = []
    for line in features.head(N_SHOWN).to_dict("records"):
        cells = [line["rank"], line["channel"], line["feature"], f"{line['score']:.4g}"]
        if size is not None:
            limits = [line.get(f"{size}_{end}") for end in ("low", "high")]
            interval = "" if None in limits else f" ({limits[0]:.2f} to {limits[1]:.2f})"
            known = line[size] == line[size]  # NaN where the squares of means are suppressed
            cells += [line["direction"], f"{line[size]:.2f}{interval}" if known else "not known"]
        if "frequency" in line:
            cells += [f"{100 * line['frequency']:.0f} %", "yes" if line["stable"] else ""]
        rows.append(cells)
    show_rows(f"Best {len(rows)} of {len(features)} features", headings, rows)
    show_rows(
        f"Heaviest {min(N_SHOWN, len(channels))} of {len(channels)} channels",
        {"channel": "left", "weight": "right", "features kept": "right"},
        [
            [row.channel, f"{row.weight:.4f}", row.n_selected]
            for row in channels.head(N_SHOWN).itertuples()
        ],
    )


def _print_stability(stability: StabilitySelector, n_features: int) -> None:
    """Say how many features are stable."""
    agreement = stability.stability_
    say(
        f"Of {n_features} features, the first {int(stability.selections_[0].sum())} were selected "
        f"on each of {len(stability.selections_)} halves of the subjects. Selected on at least "
        f"{100 * stability.threshold_:.0f} % of them, and called stable: "
        f"{int(stability.support_.sum())}; at most {stability.max_false:g} is expected by chance. "
        f"Stability {agreement.value:.2f} ({agreement.low:.2f} to {agreement.high:.2f}, "
        f"{agreement.verdict})."
    )


def _print_study(selector: IDFSMEC) -> None:
    """Say which sites and subjects count in each channel, and what sites suppressed."""
    study = selector.study_
    say("Sites and subjects that count, by channel:")
    for line in study.contributions():
        say(f"  {line}")
    for number, site in enumerate(study.sites, 1):
        for channel, reason in site.suppressed.items():
            say(f"Suppressed by {site.site or f'site {number}'}: {channel}: {reason}")
    say(f"Channels are weighed by their loss {_SCHEMES[study.scheme]}.")
