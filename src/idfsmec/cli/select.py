"""``idfsmec select``: rank the features and channels of tables, or of summaries of sites."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec.cli import options
from idfsmec.cli.app import command
from idfsmec.cli.console import print_verdict, say, say_next, show_frame, shown
from idfsmec.cli.options import AnyPath, AnyPaths, Harmonize, Names, Per
from idfsmec.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from idfsmec.prediction import IDFSMECCV
    from idfsmec.selection import IDFSMEC, StabilitySelector
    from idfsmec.table import FeatureTable

N_SHOWN = 10
_EFFECTS = {
    "hedges_g": "Hedges' g [95 % CI]",
    "eta_squared": "eta² [95 % CI]",
    "spearman": "Spearman's r [95 % CI]",
}
_SCHEMES = {
    "folds": "on the sites' folds of participants",
    "sites": "on one site at a time",
    "repeated folds": "on repeated folds of participants",
}


@command(
    tables=options.argument(
        "TABLE",
        "Feature tables (.parquet, .csv, .csv.gz), folders of Parquet files, and summaries "
        "(.summary) of sites; several are ranked together.",
    ),
    output="Where to write the ranking, a CSV file.",
    k="Number of features to select. By default 20.",
    electrodes="Number of electrodes to rank: those with the largest channel weights. Needs "
    "tables.",
    tune="Choose lam, gamma and (without --k) the number of features by inner folds of "
    "participants. Needs tables.",
    condition=options.CONDITION,
    harmonize="Bring sites to one location and scale first, as ComBat does: the sites of a "
    "table, or each summary. Warns where site and diagnosis are confounded.",
)
@options.clustered
def select(
    tables: AnyPaths,
    output: AnyPath = Path("ranking.csv"),
    k: int | None = None,
    electrodes: int | None = None,
    tune: bool = False,
    target: str | None = None,
    order: Names | None = None,
    condition: Names | None = None,
    per: Per | None = None,
    harmonize: Harmonize = None,
    adjust: Names | None = None,
    adjust_from: str | None = None,
    resamples: int = 0,
    jobs: int = -1,
    dask: str | None = None,
    force: bool = False,
) -> pd.DataFrame:
    """Rank the features and channels of a table in which channels may be missing.

    For example::

        idfsmec select table.parquet -o ranking.csv --k 20
        idfsmec select table.csv --tune --resamples 100 --condition eyes-closed
        idfsmec select table.parquet --electrodes 8
        idfsmec select table.parquet --adjust age,sex --adjust-from HC
        idfsmec select table.parquet --target bdi
        idfsmec select a.summary b.summary our_table.parquet -o ranking.csv
        idfsmec select a.summary b.summary --harmonize all
        idfsmec select folder_of_parquet_files

    Folders of Parquet files are read twice, some rows of some channels at a time,
    unless an option needs all rows. Feature weights from summaries and folders
    equal those of one table with all rows, unless a site suppressed sums. Other
    values of lam and gamma than 1 and 2 are parameters of idfsmec.IDFSMEC.
    """
    from joblib import parallel_config

    from idfsmec._files import write_csv
    from idfsmec._parallel import count_jobs
    from idfsmec.selection import IDFSMEC, StabilitySelector, channel_frame, ranking_frame

    paths = options.paths(tables, dask)
    output = options.check_output(output, ".csv", force, paths)
    options.check_numbers(resamples=resamples)
    harmonize = options.parse_harmonize(harmonize)
    adjusting = options.split_names(adjust) or [], adjust_from
    needs_rows = {"tune": tune, "resamples": resamples, "target": target, "order": order}
    needs_rows |= {"electrodes": electrodes, "per": per, "adjust": adjusting[0]}
    _check_options(paths, k, harmonize, needs_rows)
    settings: dict[str, Any] = {} if k is None else {"n_features_to_select": k}
    stability = table = None
    verdicts: list[dict[str, str]] = [{} for _ in paths]
    if _from_sums(paths, needs_rows):
        conditions = options.split_names(condition) or []
        with parallel_config(n_jobs=jobs):
            selector = _select_from_sums(paths, settings, conditions, bool(harmonize))
    else:
        joined = _read(paths, target, order, condition, per, harmonize, adjusting, electrodes)
        table, verdicts = joined
        numeric = table.target.is_numeric
        with options.naming(paths[0]):
            if tune:
                selector = _tune(table, k, dask)
            else:
                selector = IDFSMEC(**settings, numeric=numeric).fit(table.X, table.targets)
            if resamples:
                base = IDFSMEC(lam=selector.lam, gamma=selector.gamma, numeric=numeric)
                with shown(f"{resamples} halves of the participants") as progress:
                    halves = StabilitySelector(
                        base,
                        n_resamples=resamples,
                        random_state=0,
                        n_jobs=count_jobs(jobs),
                        progress=progress,
                    )
                    stability = halves.fit(table.X, table.targets)
    adjusted = None
    if table is not None and not adjust and (selector.numeric or selector.classes_.size == 2):
        adjusted = _at_equal_age_and_sex(table)
    features = ranking_frame(selector, stability=stability, adjusted=adjusted)
    channels = channel_frame(selector)
    dead = selector.missingness_.set_index("channel")["dead"]
    channels = channels[~dead.loc[channels["channel"]].to_numpy()]
    write_csv(output, features)
    if table is not None and table.target.is_numeric:
        _print_target(table)
    _print_ranking(features, channels)
    if stability is not None:
        _print_stability(stability, int(features["frequency"].notna().sum()))
    if table is None and selector.study_.sites:
        _print_study(selector)
    for path, verdict in zip(paths, verdicts, strict=True):
        print_verdict(path, verdict)
    say(f"ranking of {len(features)} features:", output)
    if not _has_summary(paths):
        say_next("benchmark", *paths, *options.target_words(target, order), "--out results")
    return features


def _from_sums(paths: Sequence[Path], needs_rows: dict[str, Any]) -> bool:
    """Return whether sums are ranked: any input is a summary, or a folder and no row is needed."""
    folders = any(path.is_dir() for path in paths)
    return _has_summary(paths) or (folders and not any(needs_rows.values()))


def _has_summary(paths: Sequence[Path]) -> bool:
    return any(path.suffix.lower() == ".summary" for path in paths)


def _check_options(
    paths: Sequence[Path], k: int | None, harmonize: bool | str, needs_rows: dict[str, Any]
) -> None:
    """Refuse options that cannot be combined, or do not suit the inputs."""
    if k is not None and k < 1:
        raise InputError(f"--k must be at least 1, got {k}.")
    if needs_rows["electrodes"] is not None and needs_rows["resamples"]:
        raise InputError(
            "--electrodes and --resamples cannot be combined: electrodes are chosen from all "
            "participants. idfsmec benchmark --experiment electrodes reports how often folds "
            "choose each electrode."
        )
    for name, value in {"harmonize": harmonize, "adjust": needs_rows["adjust"]}.items():
        if value and needs_rows["tune"]:
            raise InputError(
                f"--tune and --{name} cannot be combined: what is taken out here is learned from "
                "all participants. idfsmec benchmark and train learn it inside their folds."
            )
    for name, value in needs_rows.items():
        if value and _has_summary(paths):
            raise InputError(
                f"--{name} needs the rows of participants: give tables, not summaries."
            )
    if isinstance(harmonize, str) and _from_sums(paths, needs_rows):
        raise InputError(f"--harmonize {harmonize}: summaries can only be harmonized by all.")


def _read(
    paths: Sequence[Path],
    target: str | None,
    order: Names | None,
    condition: Names | None,
    per: str | None,
    harmonize: bool | str,
    adjust: tuple[Sequence[str], str | None],
    electrodes: int | None,
) -> tuple[FeatureTable, list[dict[str, str]]]:
    """Read and join tables, correct, choose electrodes; also return the tables' verdicts."""
    from idfsmec.prediction.adjuster import correct_table, make_corrections
    from idfsmec.selection import choose_electrodes
    from idfsmec.table import FeatureTable
    from idfsmec.table.verdicts import stored_verdict

    tables = [options.read_table(path, condition, per) for path in paths]
    table = tables[0] if len(tables) == 1 else FeatureTable.concat(tables)
    table = options.take_target(table, target, order, paths[0])
    tables = [table] if len(tables) == 1 else tables
    verdicts = [stored_verdict(*pair) for pair in zip(paths, tables, strict=True)]
    with options.naming(paths[0]):
        corrections = make_corrections(table.y.unique(), harmonize, *adjust)
        table = correct_table(table, corrections) if corrections else table
        if electrodes is not None:
            table = table.select_channels(choose_electrodes(table, electrodes))
        return table, verdicts


def _fit(tuned: IDFSMECCV, table: FeatureTable) -> IDFSMECCV:
    tuned.fit(table.X, table.targets)
    _ = tuned.selector_.effects_  # it comes back from a worker without samples
    return tuned


def _tune(table: FeatureTable, k: int | None, dask: str | None) -> IDFSMEC:
    from idfsmec._parallel import run_tasks
    from idfsmec.prediction import IDFSMECCV, ChannelImputer

    numbers: dict[str, Any] = {} if k is None else {"n_features_to_select": [k]}
    with shown("choosing lam, gamma and the number of features") as progress:
        numeric = table.target.is_numeric
        told = progress if dask is None else None  # a worker cannot tell
        tuned = IDFSMECCV(imputer=ChannelImputer(), numeric=numeric, progress=told, **numbers)
        ((_, tuned),) = run_tasks(partial(_fit, table=table), [tuned], n_jobs=1)
    best = ", ".join(f"{name} = {value}" for name, value in tuned.best_params_.items())
    score = f"log loss per participant {-tuned.best_score_:.3f}"
    if numeric:
        score = f"root mean squared error {(-tuned.best_score_) ** 0.5:.2f}"
    say(f"Inner folds chose {best} ({score}; optimistic, because it is the best of the grid).")
    selector: IDFSMEC = tuned.selector_
    return selector


def _select_from_sums(
    paths: Sequence[Path], settings: dict[str, Any], conditions: Sequence[str], harmonize: bool
) -> IDFSMEC:
    """Rank from the sums of sites; a table here is a site that suppresses nothing."""
    from idfsmec.federated import Summary, summarise
    from idfsmec.federated.summary import study_of
    from idfsmec.selection import IDFSMEC

    if len(paths) == 1 and paths[0].is_dir() and not (conditions or harmonize):
        with shown("summing up"):  # the means of participants are not kept
            return IDFSMEC(**settings).fit(paths[0])
    with shown("summing up"):
        summaries = [
            Summary.read(path)
            if path.suffix.lower() == ".summary"
            else summarise(path, min_subjects=1, site=path.stem, conditions=conditions)
            for path in paths
        ]
        if conditions:
            summaries = [summary.take(conditions=conditions) for summary in summaries]
    study_of(summaries, names=[str(path) for path in paths])  # names the files that do not fit
    with shown("ranking"):
        return IDFSMEC(**settings).fit_summaries(summaries, harmonize=harmonize)


def _at_equal_age_and_sex(table: FeatureTable) -> pd.DataFrame | None:
    """Return differences, or correlations, at equal age and sex, as far as the table has them."""
    from idfsmec.selection.effects import adjusted_effects

    known = [name for name in ("age", "sex") if table.rows is not None and name in table.rows]
    if not known or table.rows is None:
        return None
    of_table = table.X, table.targets, table.subjects, table.rows[known]
    return adjusted_effects(*of_table, numeric=table.target.is_numeric)


def _print_target(table: FeatureTable) -> None:
    """Print whose scores these are, and how many participants have none."""
    target, n = table.target, table.subjects.nunique()
    if target.kind == "grades":
        say(f"grades {' < '.join(target.order)} of {n} participants")
        return
    scores = table.scores.groupby(level=0).mean()
    left_out = f"; {target.n_without} without it are left out" if target.n_without else ""
    say(
        f"score {target.name} of {n} participants: mean {scores.mean():.1f}, standard deviation "
        f"{scores.std():.1f}, {scores.min():g} to {scores.max():g}{left_out}"
    )


def _print_ranking(features: pd.DataFrame, channels: pd.DataFrame) -> None:
    """Print the leading features and the heaviest channels."""
    from idfsmec.table.columns import feature_label

    best = features.head(N_SHOWN)
    cells = best[["rank", "channel"]].set_axis(["#", "channel"], axis=1)
    cells["feature"] = best["feature"].map(feature_label)
    for size, name in _EFFECTS.items():
        if size in best:
            if size == "spearman":
                cells["with the score"] = best["direction"].str.partition(" with ")[0]
            else:
                where = best["direction"].str.partition(" in ")
                cells[f"{where[0].iloc[0]} in"] = where[2]
            cells[name] = [_effect(row, size) for row in best.to_dict("records")]
            cells["q"] = best["q"].map("{:.2g}".format)
    if "frequency" in best:
        marks = best["stable"].map({True: " *", False: "  "})
        cells["halves"] = best["frequency"].map("{:.0%}".format) + marks
    else:
        cells["score"] = best["score"].map("{:.2g}".format)
    note = "; *: stable" if "halves" in cells else ""
    show_frame(f"First {len(best)} of {len(features)} features{note}", cells)
    first = channels.head(N_SHOWN)[["channel", "weight", "n_selected"]]
    show_frame(
        f"First {len(first)} of {len(channels)} channels by weight (equal: "
        f"{1 / max(len(channels), 1):.3f})",
        first.assign(weight=first["weight"].map("{:.3f}".format)).rename(
            columns={"n_selected": "selected features"}
        ),
    )


def _effect(row: dict[Any, Any], size: str) -> str:
    """Write an effect with its 95 % CI; sums alone give no CI."""
    if row[size] != row[size]:  # NaN where the squares of means are suppressed
        return "suppressed"
    low, high = row.get(f"{size}_low"), row.get(f"{size}_high")
    return f"{row[size]:.2f}" + ("" if low is None else f" [{low:.2f}, {high:.2f}]")


def _print_stability(stability: StabilitySelector, n_features: int) -> None:
    """Print how many features are stable, and how well halves agree."""
    n_halves, agreement = len(stability.selections_), stability.stability_
    say(
        f"Halves: {int(stability.selections_[0].sum())} of {n_features} features were selected on "
        f"each of {n_halves} random halves of the participants; --k does not change this number. "
        f"Stable features, selected on at least {100 * stability.threshold_:.0f} % of the "
        f"halves: {int(stability.support_.sum())}; at most "
        f"{stability.max_false:g} is expected by chance. Stability {agreement.value:.2f} "
        f"({agreement.verdict}); 1: the same selection on all halves, 0: chance."
    )


def _print_study(selector: IDFSMEC) -> None:
    """Print which sites and participants count in each channel, and what sites suppressed."""
    study = selector.study_
    say("Sites and participants by channel:")
    for line in study.contributions():
        say(f"  {line}")
    for number, site in enumerate(study.sites, 1):
        for channel, reason in site.suppressed.items():
            say(f"Suppressed by {site.site or f'site {number}'}: {channel}: {reason}")
    say(f"Channels are weighted by their loss {_SCHEMES[study.scheme]}.")
