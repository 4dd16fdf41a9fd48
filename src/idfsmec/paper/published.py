"""Numbers the paper prints, to stand beside measured ones.

Source of all of them: Gong, Dong, Xu, Wei, Liu, Zhuo, "Incomplete Depression Feature Selection
with Missing EEG Channels", arXiv:2511.11651. Three data sets, told apart by their number of
channels: 3 (MODMA, wearable), 64 (PRED+CT d003) and 128 (MODMA, cap).
"""

from __future__ import annotations

import math

import pandas as pd

SOURCE = "arXiv:2511.11651"

#: Channel counts of the paper's data sets, with their names.
DATASETS = {3: "MODMA 3 channels", 64: "PRED+CT d003", 128: "MODMA 128 channels"}

#: What is left of a data set's channels when it is read: of PRED+CT d003 without the mastoids M1
#: and M2; of MODMA's cap with its reference, where that has a signal.
_AS_READ = {62: 64, 129: 128}

#: Seconds per selection (Table 2; MATLAB on a Ryzen 7 4800H).
COST_SECONDS: dict[str, dict[int, float]] = {
    "mRMR": {3: 0.008, 64: 0.370, 128: 1.484},
    "CMIM": {3: 0.003, 64: 0.093, 128: 0.364},
    "ReliefF": {3: 0.090, 64: 0.284, 128: 1.181},
    "RRCT": {3: 0.139, 64: 4.468, 128: 15.317},
    "MRMSR": {3: 1.288, 64: 39.401, 128: 256.088},
    "PS-NSGA": {3: 1.740, 64: 24.633, 128: 51.938},
    "RFS": {3: 0.017, 64: 0.055, 128: 0.063},
    "FSOR": {3: 0.009, 64: 0.063, 128: 0.066},
    "GRMOR": {3: 0.275, 64: 8.235, 128: 47.173},
    "CD-LSR": {3: 0.014, 64: 6.063, 128: 4461.149},
    "IDFS-MEC": {3: 0.143, 64: 0.682, 128: 6.256},
}

#: Accuracy of IDFS-MEC as a fraction, averaged over missing rates 10-50 % (Fig. 2, Table 1).
ACCURACY: dict[str, dict[int, float]] = {
    "IDFS-MEC": {3: 0.7872, 64: 0.9550, 128: 0.8750},
}

#: Accuracy with a part of the method taken out, averaged over missing rates 10-50 % (Table 1).
ABLATION: dict[str, dict[int, float]] = {
    "IDFS-MEC": ACCURACY["IDFS-MEC"],
    "no redundancy": {3: 0.6971, 64: 0.9056, 128: 0.7750},
    "no channel weights": {3: 0.7185, 64: 0.8831, 128: 0.7050},
    "no indicator": {3: 0.7457, 64: 0.9148, 128: 0.8450},
}

_TABLES = {
    "cost": (COST_SECONDS, "seconds", "Table 2"),
    "accuracy": (ACCURACY, "accuracy", "Fig. 2, mean over missing rates 10-50 %"),
    "ablation": (ABLATION, "accuracy", "Table 1, mean over missing rates 10-50 %"),
}


def published(experiment: str) -> pd.DataFrame:
    """All published values of an experiment, one per row.

    Parameters
    ----------
    experiment : {"cost", "accuracy", "ablation"}

    Returns
    -------
    DataFrame
        Columns ``method``, ``n_channels``, ``value``, ``unit`` ("seconds", or "accuracy" as a
        fraction) and ``source``.

    Examples
    --------
    >>> found = published("cost")
    >>> found[(found["method"] == "IDFS-MEC") & (found["n_channels"] == 64)]["value"].item()
    0.682
    """
    values, unit, where = _table(experiment)
    return pd.DataFrame(
        [
            {
                "method": method,
                "n_channels": n_channels,
                "value": value,
                "unit": unit,
                "source": f"{SOURCE}, {where}",
            }
            for method, by_channels in values.items()
            for n_channels, value in by_channels.items()
        ]
    )


def published_value(experiment: str, method: str, n_channels: int) -> float:
    """One published value, or NaN where the paper has none.

    Method names are compared without case and punctuation, so ``PSNSGA`` finds ``PS-NSGA``. A
    data set counts by its number of channels; 62 is PRED+CT d003, read without the mastoids.

    Examples
    --------
    >>> published_value("cost", "CDLSR", 128)
    4461.149
    >>> published_value("cost", "CD-LSR", 19)
    nan
    """
    values, _, _ = _table(experiment)
    wanted = _plain(method)
    for name, by_channels in values.items():
        if _plain(name) == wanted:
            return by_channels.get(_AS_READ.get(n_channels, n_channels), math.nan)
    return math.nan


def _table(experiment: str) -> tuple[dict[str, dict[int, float]], str, str]:
    if experiment not in _TABLES:
        raise ValueError(
            f"The paper has values for {', '.join(_TABLES)}; there are none for {experiment!r}."
        )
    return _TABLES[experiment]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
