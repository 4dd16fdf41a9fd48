"""What a whole grid costs: idfs_path against one fit, IDFSMECCV against GridSearchCV."""

from __future__ import annotations

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from benchmarks._data import channel_table
from benchmarks._timing import markdown, time_in_turns
from idfsmec import IDFSMEC, IDFSMECCV, idfs_path

LAMS = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]
GAMMAS = list(range(2, 10))
SMALL = {"lams": [1e-2, 1.0, 1e2], "gammas": [1.1, 2.0, 5.0]}
DEFAULT = {"lams": LAMS, "gammas": [1.1, 1.5, 2.0, 3.0, 5.0, 9.0]}
# With one number of features and one cost all settings are compared, as a grid search does.
N_FEATURES, COST = 20, 0.1
#: Standard deviations at which the search cuts what its classifier sees.
CUT = 6.0
SEARCHES = ((19, 600), (19, 1650), (64, 1000))


def main(searches: tuple[tuple[int, int], ...] = SEARCHES) -> None:
    """Print both comparisons; searches over tables of so many channels and samples."""
    print("## The paper's 7 x 8 grid against the slowest of its seven fits\n")
    print(path_against_fit())
    print("\n## IDFSMECCV against GridSearchCV, the same grid and folds\n")
    print(search_against_grid_search(searches))


def path_against_fit() -> str:
    """Seconds of the grid, of every single fit, and the ratio to the slowest."""
    rows = []
    for n_channels in (19, 64, 128):
        X, y, channels = channel_table(n_channels)
        programs = {
            f"lam={lam:g}": lambda X=X, y=y, c=channels, lam=lam: IDFSMEC(c, lam=lam).fit(X, y)
            for lam in LAMS
        }
        programs["grid"] = lambda X=X, y=y, c=channels: idfs_path(
            X, y, channels=c, lams=LAMS, gammas=GAMMAS
        )
        timings = time_in_turns(programs, repeats=5)
        grid = timings.pop("grid")
        hardest = max(timings, key=lambda name: timings[name].median)
        slowest = timings[hardest]
        ratios = [a / b for a, b in zip(grid.seconds, slowest.seconds, strict=True)]
        rows.append(
            [
                str(n_channels),
                f"{grid.median:.3f}",
                f"{slowest.median:.3f} ({hardest})",
                f"{np.median(ratios):.1f}",
                f"{min(ratios):.1f}-{max(ratios):.1f}",
            ]
        )
    headings = ["channels", "7 x 8 grid, s", "slowest single fit, s", "ratio", "spread"]
    return markdown(headings, rows)


def search_against_grid_search(searches: tuple[tuple[int, int], ...]) -> str:
    """Seconds of both searches, and how far apart their scores are."""
    rows = []
    for n_channels, n_samples in searches:
        for grid, repeats in ((SMALL, 3), (DEFAULT, 1)):
            rows.append(_one_search(n_channels, n_samples, grid, repeats))
    headings = ["channels", "samples", "settings", "IDFSMECCV, s", "GridSearchCV, s", "ratio"]
    return markdown([*headings, "spread", "scores apart"], rows)


def _one_search(n_channels: int, n_samples: int, grid: dict[str, list], repeats: int) -> list[str]:
    X, y, channels = channel_table(n_channels, n_samples=n_samples)
    folds = StratifiedKFold(5)
    criterion = "balanced_accuracy"
    # By the paper's loss: the folds of the other one depend on names, in which searches differ.
    own = {"channels": channels, "channel_loss": "in-sample"}
    ours = IDFSMECCV(
        **own, **grid, n_features_to_select=[N_FEATURES], costs=[COST], cv=folds, scoring=criterion
    )
    svm = LinearSVC(C=COST, dual=False, class_weight="balanced")
    cut = FunctionTransformer(np.clip, kw_args={"min": -CUT, "max": CUT})
    theirs = GridSearchCV(
        make_pipeline(
            IDFSMEC(**own, n_features_to_select=N_FEATURES),
            StandardScaler(), cut, SimpleImputer(), svm,
        ),
        {f"idfsmec__{name.removesuffix('s')}": values for name, values in grid.items()},
        cv=folds,
        scoring=criterion,
    )  # fmt: skip
    timings = time_in_turns(
        {"ours": lambda: ours.fit(X, y), "theirs": lambda: theirs.fit(X, y)},
        repeats=repeats,
        warm_up=False,
    )
    apart = _by_params(ours.cv_results_) - _by_params(theirs.cv_results_)
    own, other = timings["ours"], timings["theirs"]
    ratios = [b / a for a, b in zip(own.seconds, other.seconds, strict=True)]
    return [
        str(n_channels),
        str(n_samples),
        str(len(ours.cv_results_["params"])),
        f"{own.median:.2f}",
        f"{other.median:.2f}",
        f"{np.median(ratios):.1f}",
        f"{min(ratios):.1f}-{max(ratios):.1f}",
        f"{np.abs(apart).max():.0e}",
    ]


def _by_params(results: dict) -> np.ndarray:
    """Mean scores, in one order of lam and gamma."""
    names = [
        next(key for key in results if key.startswith("param_") and key.endswith(name))
        for name in ("lam", "gamma")
    ]
    order = np.lexsort([np.asarray(results[name], dtype=float) for name in names])
    return results["mean_test_score"][order]


if __name__ == "__main__":
    main()
