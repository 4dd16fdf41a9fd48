"""``idfsmec select``: rank the features and channels of tables, or of summaries of sites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import say, show_frame, shown, warnings_as_lines
from idfsmec.cli.options import AnyPath, AnyPaths, Harmonize
from idfsmec.errors import InputError

if TYPE_CHECKING:
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
    tune="Choose lam, gamma and (without --k) the number of features by inner folds of subjects. "
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
    harmonize: Harmonize = None,
    resamples: int = 0,
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
    suppressed anything. One process solves all halves, which have a fixed seed:
    there is neither --jobs nor --seed.
    """
    from idfsmec.selection import channel_frame, ranking_frame

    given = options.paths(tables)
    output = options.check_output(output, ".csv", force)
    options.check_numbers(resamples=resamples)
    if k is not None and k < 1:
        raise InputError(f"--k must be at least 1, got {k}.")
    if harmonize and tune:
        raise InputError(
            "--tune holds subjects out, and --harmonize learns from all: idfsmec benchmark and "
            "train harmonize inside their folds."
        )
    harmonize = options.parse_harmonize(harmonize)
    settings: dict[str, Any] = {"lam": lam, "gamma": gamma}
    settings |= {} if k is None else {"n_features_to_select": k}
    stability = table = None
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
        table = _read(given, harmonize)
        with warnings_as_lines(), options.naming(given[0]):
            selector = _tune(table, settings) if tune else _fit(table, settings)
            stability = _resample(table, selector, resamples) if resamples else None
    features, channels = ranking_frame(selector), channel_frame(selector)
    dead = selector.missingness_.set_index("channel")["dead"]
    channels = channels[~dead.loc[channels["channel"]].to_numpy()]
    if stability is not None and table is not None:
        features = _add_frequencies(features, table, stability)
    options.write_csv(features, output)
    _print_ranking(features, channels)
    if stability is not None:
        _print_stability(stability, int(features["frequency"].notna().sum()))
    if table is None:
        _print_study(selector)
    say(f"Ranking of {len(features)} features written to {output}.")
    return features


def _read(given: Sequence[Path], harmonize: bool | str) -> FeatureTable:
    """Read tables, put several together, and harmonize their sites where that is asked for."""
    from idfsmec.prediction.harmonizer import harmonize_table
    from idfsmec.table import FeatureTable

    with warnings_as_lines():
        tables = [FeatureTable.read(path) for path in given]
        table = tables[0] if len(tables) == 1 else FeatureTable.concat(tables)
        with options.naming(given[0]):
            return harmonize_table(table, harmonize) if harmonize else table


def _fit(table: FeatureTable, settings: dict[str, Any]) -> IDFSMEC:
    from idfsmec.selection import IDFSMEC

    selector = IDFSMEC(table.column_channels, **settings)
    with shown("ranking"):
        return selector.fit(table.X, table.y, groups=table.subjects)


def _tune(table: FeatureTable, settings: dict[str, Any]) -> IDFSMEC:
    from idfsmec.prediction import ChannelImputer
    from idfsmec.selection import IDFSMECCV

    search: dict[str, Any] = {"imputer": ChannelImputer()}
    if "n_features_to_select" in settings:
        search["n_features_to_select"] = [settings["n_features_to_select"]]
    with shown("choosing lam, gamma and the number of features") as progress:
        tuned = IDFSMECCV(table.column_channels, progress=progress, **search)
        tuned.fit(table.X, table.y, groups=table.subjects)
    best = ", ".join(f"{name} = {value}" for name, value in tuned.best_params_.items())
    say(
        f"Inner folds chose {best} (log loss by subject {-tuned.best_score_:.3f}, "
        "optimistic: the best of the grid)."
    )
    return tuned.selector_


def _resample(table: FeatureTable, selector: IDFSMEC, resamples: int) -> StabilitySelector:
    from idfsmec.selection import IDFSMEC, StabilitySelector

    with shown(f"{resamples} halves of the subjects") as progress:
        return StabilitySelector(
            IDFSMEC(lam=selector.lam, gamma=selector.gamma),
            channels=table.column_channels,
            n_resamples=resamples,
            random_state=0,
            progress=progress,
        ).fit(table.X, table.y, groups=table.subjects)


def _select_from_sums(given: Sequence[Path], settings: dict[str, Any], harmonize: bool) -> IDFSMEC:
    """Rank from the sums of sites; a table here is a site that suppresses nothing."""
    from idfsmec.federated import Summary, summarise
    from idfsmec.federated.study import study_of
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
    features: pd.DataFrame, table: FeatureTable, stability: StabilitySelector
) -> pd.DataFrame:
    """Add how often halves selected each feature, and whether that is often enough."""
    import pandas as pd

    names = pd.Index(features["channel"] + "__" + features["feature"])
    columns = table.X.columns.get_indexer(names)
    dead = features["channel"].isin(stability.channel_names_[stability.dead_channels_])
    frequency = pd.Series(stability.frequencies_[columns]).mask(dead)
    return features.assign(frequency=frequency, stable=stability.support_[columns])


def _print_ranking(features: pd.DataFrame, channels: pd.DataFrame) -> None:
    """Print the leading features and the heaviest channels."""
    best = features.head(N_SHOWN)
    cells = best[["rank", "channel", "feature"]].assign(score=best["score"].map("{:.4g}".format))
    for size in best.columns.intersection(["hedges_g", "eta_squared"]):
        cells["direction"] = best["direction"]
        cells[size.replace("_", " ")] = [_effect(row, size) for row in best.to_dict("records")]
    if "frequency" in best:
        cells["in halves"] = best["frequency"].map("{:.0%}".format)
        cells["stable"] = best["stable"].map({True: "yes", False: ""})
    show_frame(f"Best {len(best)} of {len(features)} features", cells)
    heaviest = channels.head(N_SHOWN)[["channel", "weight", "n_selected"]]
    show_frame(
        f"Heaviest {len(heaviest)} of {len(channels)} channels",
        heaviest.assign(weight=heaviest["weight"].map("{:.4f}".format)).rename(
            columns={"n_selected": "features kept"}
        ),
    )


def _effect(row: dict[Any, Any], size: str) -> str:
    """Write an effect with its interval; without, where only sums are there."""
    if row[size] != row[size]:  # NaN where the squares of means are suppressed
        return "not known"
    low, high = row.get(f"{size}_low"), row.get(f"{size}_high")
    return f"{row[size]:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")


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
