"""A fitted selector as tables a person can read."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from idfsmec._columns import SEPARATOR, channel_codes, channel_columns


def ranking_frame(selector: Any) -> pd.DataFrame:
    """All features of a fitted :class:`IDFSMEC` or :class:`IDFSMECCV`, best first.

    Returns
    -------
    DataFrame
        Columns ``rank, channel, feature, score, channel_weight, feature_weight, selected``, then
        those of ``effects_`` where the selector has them: ``n_people``, ``direction`` ("higher in
        MDD") and sizes with intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from idfsmec import IDFSMEC
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["F3__alpha", "Cz__alpha"])
    >>> y = np.arange(40) % 2
    >>> X["Cz__alpha"] += 2 * y
    >>> selector = IDFSMEC(n_features_to_select=1).fit(X, y)
    >>> ranking_frame(selector)[["rank", "channel", "feature", "selected"]]
       rank channel feature  selected
    0     1      Cz   alpha      True
    1     2      F3   alpha     False
    """
    check_is_fitted(selector, "ranking_")
    names = getattr(selector, "feature_names_in_", None)
    n_features = selector.ranking_.size
    _, columns = channel_columns(selector.channels, n_features, names)
    channel = channel_codes(columns)
    named = (
        [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]
    )
    frame = pd.DataFrame(
        {
            "rank": selector.ranking_,
            "channel": selector.channel_names_[channel],
            "feature": [name.rpartition(SEPARATOR)[2] for name in named],
            "score": selector.scores_,
            "channel_weight": selector.channel_weights_[channel],
            "feature_weight": selector.feature_weights_,
            "selected": selector.support_,
        }
    )
    effects = getattr(selector, "effects_", None)
    if effects is not None:
        frame = frame.join(effects.drop(columns="feature"))
    return frame.sort_values("rank", ignore_index=True)


def channel_frame(selector: Any) -> pd.DataFrame:
    """All channels of a fitted :class:`IDFSMEC` or :class:`IDFSMECCV`, heaviest first.

    Returns
    -------
    DataFrame
        Columns ``channel, weight, n_selected`` (how many of its features are kept).
    """
    check_is_fitted(selector, "ranking_")
    names = getattr(selector, "feature_names_in_", None)
    _, columns = channel_columns(selector.channels, selector.ranking_.size, names)
    kept = [int(selector.support_[own].sum()) for own in columns]
    frame = pd.DataFrame(
        {
            "channel": selector.channel_names_,
            "weight": selector.channel_weights_,
            "n_selected": kept,
        }
    )
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)
