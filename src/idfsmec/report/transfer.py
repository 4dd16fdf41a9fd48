"""Transfer between tables: the matrix of AUCs as a figure and as text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from idfsmec.evaluation import Results, transfer_matrix
from idfsmec.evaluation.transfer import OTHERS
from idfsmec.report import data, style
from idfsmec.report.data import TableResults, View
from idfsmec.report.text import number_with_ci, plain_records

# Above this AUC a cell is dark.
_DARK = 0.8


def pivot_matrix(matrix: pd.DataFrame, method: str, harmonized: bool = False) -> pd.DataFrame:
    """Return AUCs or correlations with CIs as text, tables trained on as rows."""
    of_method = matrix[matrix["method"] == method]
    # Within a table nothing is harmonized.
    same = of_method["trained_on"] == of_method["tested_on"]
    shown = of_method[same | (of_method["harmonized"] == harmonized)]
    rows = plain_records(shown.rename(columns={"auc": "mean", "spearman": "mean"}))
    cells = shown.assign(text=[number_with_ci(row) for row in rows])
    orders = {key: list(dict.fromkeys(shown[key])) for key in ("trained_on", "tested_on")}
    wide = cells.pivot(index="trained_on", columns="tested_on", values="text")
    return wide.reindex(index=orders["trained_on"], columns=orders["tested_on"]).fillna("")


def name_metric(matrix: pd.DataFrame) -> str:
    """Return what the cells of a matrix are."""
    return "AUC per participant" if "auc" in matrix else "Spearman's correlation"


@style.literal_text
def plot_transfer(
    results: Results,
    method: str | None = None,
    *,
    harmonized: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw how a method does on each table after training on each other one.

    Parameters
    ----------
    results : Results
        With the experiment :func:`idfsmec.evaluation.transfer`.
    method : str, optional
        By default the proposed one, or the first.
    harmonized : bool, default=False
        Whether tables were brought to one location and scale.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    Axes
    """
    matrix = transfer_matrix(results)
    method = method or _main_method(results, matrix)
    texts = pivot_matrix(matrix, method, harmonized)
    values = texts.map(lambda text: float(text.partition(" ")[0]) if text else np.nan)
    n_rows, n_columns = texts.shape
    ax = style.make_axes(ax, 2.6 + 1.25 * n_columns, 1.6 + 0.6 * n_rows)
    shown = values.to_numpy(dtype=float)
    lowest = 0.5 if "auc" in matrix else 0.0
    image = ax.imshow(shown, cmap=style.SEQUENTIAL, vmin=lowest, vmax=1, aspect="auto")
    for i, trained in enumerate(texts.index):
        for j, tested in enumerate(texts.columns):
            text = str(texts.iloc[i, j]).replace(" (", "\n(")
            ink = style.PAPER if shown[i, j] > _DARK else style.INK
            ax.text(j, i, text, ha="center", va="center", color=ink, fontsize="small")
            if trained == tested:
                frame = Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=style.INK)
                ax.add_patch(frame).set_linewidth(1.6)
    ax.set_xticks(range(n_columns), list(texts.columns))
    ax.set_yticks(range(n_rows), list(texts.index))
    ax.set(xlabel="tested on", ylabel="trained on")
    note = f"{data.label_of(method, results.methods)}{', harmonized' if harmonized else ''}"
    style.style_axes(ax, "Trained here, tested there", note, grid=None)
    style.add_colorbar(ax, image, name_metric(matrix))
    return ax


def _main_method(results: Results, matrix: pd.DataFrame) -> str:
    names = list(dict.fromkeys(matrix["method"]))
    return data.main_method(names, results.methods) or names[0]


def transfer_views(table: TableResults) -> Iterator[View]:
    """Yield the matrix of the main method, as it is and harmonized."""
    if table.all_rows("transfer").empty:
        return
    matrix = transfer_matrix(table.results)
    method = _main_method(table.results, matrix)
    of_method = matrix[matrix["method"] == method]
    for harmonized in matrix["harmonized"].drop_duplicates().tolist():
        arguments = {"results": table.results, "method": method, "harmonized": harmonized}
        said = _say_means(table.results, matrix, harmonized)
        yield View(arguments, of_method, "harmonized" if harmonized else "", said)


def _say_means(results: Results, matrix: pd.DataFrame, harmonized: bool) -> str:
    """Return the mean AUC or correlation of each method within tables, and between them."""
    metric = "auc" if "auc" in matrix else "spearman"
    within = matrix["trained_on"] == matrix["tested_on"]
    between = ~within & (matrix["trained_on"] != OTHERS) & (matrix["harmonized"] == harmonized)
    means = [
        matrix[rows].groupby("method", sort=False)[metric].mean() for rows in (within, between)
    ]
    cells = [
        f"{data.label_of(name, results.methods)} {means[0][name]:.2f} and {means[1][name]:.2f}"
        for name in means[0].index
    ]
    what = "AUC" if metric == "auc" else "correlation"
    return f"Mean {what} within tables and between them, not tested: {'; '.join(cells)}."
