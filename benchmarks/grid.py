"""What a whole grid costs: idfs_path against one fit, IDFSMECCV against GridSearchCV."""

from __future__ import annotations

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks._data import channel_table
from benchmarks._timing import markdown, time_in_turns
from idfsmec import IDFSMEC, IDFSMECCV, idfs_path

LAMS = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]
GAMMAS = list(range(2, 10))


def main() -> None:
    """Print both comparisons."""
    print("## The paper's 7 x 8 grid against the slowest of its seven fits\n")
    print(path_against_fit())
    print("\n## IDFSMECCV against GridSearchCV, the same grid and folds\n")
    print(search_against_grid_search())


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
        timings = time_in_turns(programs, repeats=3)
        grid = timings.pop("grid").median
        hardest = max(timings, key=lambda name: timings[name].median)
        slowest = timings[hardest].median
        rows.append(
            [str(n_channels), f"{grid:.3f}", f"{slowest:.3f} ({hardest})", f"{grid / slowest:.1f}"]
        )
    return markdown(["channels", "7 x 8 grid, s", "slowest single fit, s", "ratio"], rows)


def search_against_grid_search() -> str:
    """Seconds of both searches on a 19-channel table, and whether they choose alike."""
    X, y, channels = channel_table(19, n_samples=600)
    lams, gammas, counts = [1e-2, 1.0, 1e2], [1.1, 2.0, 5.0], [5, 20]
    folds = StratifiedKFold(5)
    ours = IDFSMECCV(channels, lams=lams, gammas=gammas, n_features=counts, cv=folds)
    theirs = GridSearchCV(
        make_pipeline(IDFSMEC(channels), StandardScaler(), SimpleImputer(), LinearSVC()),
        {
            "idfsmec__lam": lams,
            "idfsmec__gamma": gammas,
            "idfsmec__n_features_to_select": counts,
        },
        cv=folds,
        scoring="balanced_accuracy",
    )
    timings = time_in_turns(
        {"IDFSMECCV": lambda: ours.fit(X, y), "GridSearchCV": lambda: theirs.fit(X, y)},
        repeats=3,
        warm_up=False,
    )
    alike = np.allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    own = timings["IDFSMECCV"].median
    rows = [[name, f"{t.median:.2f}", f"{t.median / own:.1f}"] for name, t in timings.items()]
    rows.append(["all scores alike", str(alike), ""])
    return markdown(["program", "seconds", "times IDFSMECCV"], rows)


if __name__ == "__main__":
    main()
