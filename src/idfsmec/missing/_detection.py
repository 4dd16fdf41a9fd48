"""What a detection found: which reason hit which channel in which epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

#: Reasons in the order in which the rules are applied, with the words of the summary.
REASONS = {
    "nan": "NaN or infinite samples",
    "flat": "no signal",
    "clipped": "clipped or railed",
    "amplitude": "beyond the limits of amplitude",
    "line": "mains instead of EEG",
    "decorrelated": "unlike its neighbours",
}


@dataclass(frozen=True)
class Detection:
    """Missing channels of one recording, epoch by epoch, with the reasons.

    Parameters
    ----------
    reasons : mapping of str to ndarray of shape (n_epochs, n_channels), bool
        Where each rule hit: ``nan``, ``flat``, ``clipped``, ``amplitude``, ``line``,
        ``decorrelated``. A cell may have several.
    ch_names : tuple of str
        Names of the channels.
    hint : str
        Advice where the whole recording looks wrong, else empty.
    """

    reasons: Mapping[str, np.ndarray]
    ch_names: tuple[str, ...]
    hint: str = ""

    @property
    def missing(self) -> np.ndarray:
        """Bool of shape (n_epochs, n_channels): True where any rule hit."""
        return np.any(list(self.reasons.values()), axis=0)

    @property
    def observed(self) -> pd.DataFrame:
        """Bool of shape (n_epochs, n_channels), columns are channels: True where none hit."""
        return pd.DataFrame(~self.missing, columns=pd.Index(self.ch_names))

    @property
    def bads(self) -> list[str]:
        """Channels missing in more than half of the epochs, for ``raw.info["bads"]``."""
        often = self.missing.mean(axis=0) > 0.5 if len(self.missing) else []
        return [name for name, bad in zip(self.ch_names, often, strict=False) if bad]

    def to_frame(self) -> pd.DataFrame:
        """One row per hit, with columns ``epoch``, ``channel``, ``reason``."""
        rows = [
            (int(epoch), self.ch_names[channel], reason)
            for reason, hits in self.reasons.items()
            for epoch, channel in zip(*np.nonzero(hits), strict=True)
        ]
        frame = pd.DataFrame(rows, columns=["epoch", "channel", "reason"])
        return frame.sort_values(["epoch", "channel"], kind="stable", ignore_index=True)

    def summary(self) -> str:
        """Say in a few lines what is missing and why."""
        missing = self.missing
        n_epochs, n_channels = missing.shape
        lines = [
            f"{missing.sum()} of {missing.size} channel epochs missing "
            f"({missing.mean() if missing.size else 0:.1%}; "
            f"{n_epochs} epochs x {n_channels} channels)"
        ]
        for index in np.flatnonzero(missing.any(axis=0)):
            words = [
                f"{REASONS[reason]} in {hits[:, index].sum()}"
                for reason, hits in self.reasons.items()
                if hits[:, index].any()
            ]
            where = _ranges(np.flatnonzero(missing[:, index]))
            lines.append(f"  {self.ch_names[index]}: epochs {where} ({'; '.join(words)})")
        return "\n".join([*lines, self.hint] if self.hint else lines)

    def __str__(self) -> str:
        return self.summary()


def _ranges(epochs: np.ndarray) -> str:
    """Write 0,1,2,5 as ``0-2, 5``."""
    runs = np.split(epochs, np.flatnonzero(np.diff(epochs) > 1) + 1)
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
