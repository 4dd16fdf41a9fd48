"""Default grids of tuning, for ``IDFSMECCV``, ``select --tune`` and the benchmark.

Numbers only: whoever completes a word on the command line may read them without waiting for more.
"""

from __future__ import annotations

#: Redundancy weights, the paper's grid.
LAMS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
#: Channel weightings; the paper's grid is 2 ... 9, but values near 1 often do better.
GAMMAS = (1.1, 1.5, 2.0, 3.0, 5.0, 9.0)
#: Costs C of the linear SVM.
SVM_COSTS = (0.001, 0.01, 0.1, 1.0)
#: Numbers of features; 1.0 is all.
N_FEATURES: tuple[int | float, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 1.0)
#: What is left only for a clear gain: so many features, and this cost.
USUAL_N_FEATURES, USUAL_COST = 20, 0.01
#: Inner folds.
N_INNER_SPLITS = 5
#: What is maximised, one of :data:`idfsmec.metrics.CRITERIA`.
CRITERION = "subject_neg_log_loss"
#: The same for a score, one of :data:`idfsmec.metrics.SCORE_CRITERIA`.
SCORE_CRITERION = "subject_neg_squared_error"
