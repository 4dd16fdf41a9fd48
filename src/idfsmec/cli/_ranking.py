"""A ranking on the screen: its leading features and channels, and how stable it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from idfsmec.cli._console import console, plain, say

if TYPE_CHECKING:  # at run time when they are needed: --help should not wait for them
    import pandas as pd

    from idfsmec.selection import StabilitySelector

SHOWN = 10
# Columns that hold words.
_WORDS = ("channel", "feature", "stable", "direction")


def show_ranking(features: pd.DataFrame, channels: pd.DataFrame) -> None:
    """Draw the leading features and the heaviest channels."""
    from rich.table import Table
    from rich.text import Text

    best = Table(title=f"Best {min(SHOWN, len(features))} of {len(features)} features")
    headings = ["rank", "channel", "feature", "score"]
    size = next((name for name in ("hedges_g", "eta_squared") if name in features), None)
    if size is not None:
        headings += ["direction", size.replace("_", " ")]
    if "frequency" in features:
        headings += ["in halves", "stable"]
    for heading in headings:
        best.add_column(heading, justify="left" if heading in _WORDS else "right")
    for line in features.head(SHOWN).to_dict("records"):
        cells: list[str | Text] = [
            str(line["rank"]),
            plain(line["channel"]),
            plain(line["feature"]),
            f"{line['score']:.4g}",
        ]
        if size is not None:
            cells += [plain(line["direction"]), _sized(line, size)]
        if "frequency" in line:
            cells += [f"{100 * line['frequency']:.0f} %", "yes" if line["stable"] else ""]
        best.add_row(*cells)
    console.print(best)
    heaviest = Table(title=f"Heaviest {min(SHOWN, len(channels))} of {len(channels)} channels")
    for heading in ("channel", "weight", "features kept"):
        heaviest.add_column(heading, justify="left" if heading == "channel" else "right")
    for row in channels.head(SHOWN).itertuples():
        heaviest.add_row(plain(row.channel), f"{row.weight:.4f}", str(row.n_selected))
    console.print(heaviest)


def _sized(line: dict[Any, Any], size: str) -> str:
    """Size of an effect, with its interval where there is one: sums have none."""
    if f"{size}_low" not in line:
        return f"{line[size]:.2f}"
    return f"{line[size]:.2f} ({line[f'{size}_low']:.2f} to {line[f'{size}_high']:.2f})"


def show_stability(stability: StabilitySelector, of: int) -> None:
    """Say how many features are stable."""
    picked = int(stability.selections_[0].sum())
    found, agreement = int(stability.support_.sum()), stability.stability_
    say(
        f"Of {of} features, the first {picked} were selected on each of "
        f"{len(stability.selections_)} halves of the subjects. Selected on at least "
        f"{100 * stability.threshold_:.0f} % "
        f"of them, and called stable: {found}; at most {stability.max_false:g} is expected by "
        f"chance. Stability {agreement.value:.2f} ({agreement.low:.2f} to {agreement.high:.2f}, "
        f"{agreement.verdict})."
    )
