"""Numbers the paper prints, to stand beside measured ones.

Source of all of them: Gong, Dong, Xu, Wei, Liu, Zhuo, "Incomplete Depression Feature Selection
with Missing EEG Channels", arXiv:2511.11651. Three data sets, by the names under which
:func:`idfsmec.paper.reproduce` knows them: MODMA's wearable of 3 channels, MODMA's cap of 128, and
PRED+CT d003 with 64.
"""

from __future__ import annotations

import math

import pandas as pd

SOURCE = "arXiv:2511.11651"

#: The paper's data sets, with what it calls them.
DATASETS = {
    "modma3": "MODMA 3 channels",
    "pred-d003": "PRED+CT d003",
    "modma128": "MODMA 128 channels",
}


def _by_data_set(values: dict[str, tuple[float, float, float]]) -> dict[str, dict[str, float]]:
    """Columns of the paper's tables: 3, 64 and 128 channels."""
    return {method: dict(zip(DATASETS, row, strict=True)) for method, row in values.items()}


#: Seconds per selection (Table 2; MATLAB on a Ryzen 7 4800H).
COST_SECONDS = _by_data_set(
    {
        "mRMR": (0.008, 0.370, 1.484),
        "CMIM": (0.003, 0.093, 0.364),
        "ReliefF": (0.090, 0.284, 1.181),
        "RRCT": (0.139, 4.468, 15.317),
        "MRMSR": (1.288, 39.401, 256.088),
        "PS-NSGA": (1.740, 24.633, 51.938),
        "RFS": (0.017, 0.055, 0.063),
        "FSOR": (0.009, 0.063, 0.066),
        "GRMOR": (0.275, 8.235, 47.173),
        "CD-LSR": (0.014, 6.063, 4461.149),
        "IDFS-MEC": (0.143, 0.682, 6.256),
    }
)

#: Accuracy of IDFS-MEC as a fraction, averaged over missing rates 10-50 % (Fig. 2, Table 1).
ACCURACY = _by_data_set(
    {
        "IDFS-MEC": (0.7872, 0.9550, 0.8750),
    }
)

#: Accuracy with a part of the method taken out, averaged over missing rates 10-50 % (Table 1).
ABLATION = _by_data_set(
    {
        "IDFS-MEC": (0.7872, 0.9550, 0.8750),
        "no redundancy": (0.6971, 0.9056, 0.7750),
        "no channel weights": (0.7185, 0.8831, 0.7050),
        "no indicator": (0.7457, 0.9148, 0.8450),
    }
)

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
        Columns ``method``, ``data_set``, ``value``, ``unit`` ("seconds", or "accuracy" as a
        fraction) and ``source``.

    Examples
    --------
    >>> found = published("cost")
    >>> found[(found["method"] == "IDFS-MEC") & (found["data_set"] == "pred-d003")]["value"].item()
    0.682
    """
    values, unit, where = _table(experiment)
    return pd.DataFrame(
        [
            {
                "method": method,
                "data_set": data_set,
                "value": value,
                "unit": unit,
                "source": f"{SOURCE}, {where}",
            }
            for method, row in values.items()
            for data_set, value in row.items()
        ]
    )


def published_value(experiment: str, method: str, data_set: str | None) -> float:
    """One published value, or NaN where the paper has none.

    Method names are compared without case and punctuation, so ``PSNSGA`` finds ``PS-NSGA``.

    Examples
    --------
    >>> published_value("cost", "CDLSR", "modma128")
    4461.149
    >>> published_value("cost", "CD-LSR", "my own data")
    nan
    """
    values, _, _ = _table(experiment)
    wanted = _plain(method)
    for name, row in values.items():
        if _plain(name) == wanted:
            return row.get(data_set or "", math.nan)
    return math.nan


def _table(experiment: str) -> tuple[dict[str, dict[str, float]], str, str]:
    if experiment not in _TABLES:
        raise ValueError(
            f"The paper has values for {', '.join(_TABLES)}; there are none for {experiment!r}."
        )
    return _TABLES[experiment]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
