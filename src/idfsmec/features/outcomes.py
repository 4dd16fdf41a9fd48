"""What became of each recording, and the closing words about all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from idfsmec._names import same_name
from idfsmec._table_reasons import NOT_RECORDED
from idfsmec.table import FeatureTable

MOST_NAMED = 10


@dataclass(frozen=True)
class RecordingOutcome:
    """What became of one recording.

    Parameters
    ----------
    source, subject, label : str
        As in the recording.
    status : {"done", "resumed", "empty", "failed"}
        Computed now, found finished, no epoch with any channel left, or not readable.
    n_epochs, n_rows : int
        Epochs of the recording, and rows it has in the table.
    channels : tuple of str
        Its EEG channels.
    reasons : dict
        Why channels are missing: reason to channel to number of epochs.
    renamed : dict
        Channels that have another name in the file, from that name to the table's.
    dropped : dict
        Channels of the file that are not used, with the reason.
    facts : dict
        How it was recorded; see :class:`RecordingFeatures`.
    error : str
        What went wrong, if it failed.
    mendable : bool
        Whether the user can mend it (an :class:`~idfsmec.errors.InputError`).
    notes : tuple of str
        Advice and warnings.
    epochs, cells
        As in :class:`~idfsmec.features.pipeline.RecordingFeatures`.
    """

    source: str
    subject: str
    label: str
    status: str
    n_epochs: int = 0
    n_rows: int = 0
    channels: tuple[str, ...] = ()
    reasons: dict[str, dict[str, int]] = field(default_factory=dict)
    montage: str = ""
    renamed: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    error: str = ""
    mendable: bool = True
    notes: tuple[str, ...] = ()
    epochs: tuple[int, ...] = ()
    cells: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Extraction:
    """A table and how it came about.

    Parameters
    ----------
    table : FeatureTable
    outcomes : sequence of RecordingOutcome
        One for each recording, in their order.
    on_error : {"raise", "skip"}
        Whether recordings without a row in the table were to be skipped.
    """

    table: FeatureTable
    outcomes: Sequence[RecordingOutcome]
    on_error: str = "raise"

    @property
    def incomplete(self) -> bool:
        """Whether a recording has no row in the table that nobody asked to skip."""
        return self.on_error == "raise" and bool(self.skipped)

    @property
    def skipped(self) -> list[RecordingOutcome]:
        """Recordings without a row in the table."""
        return [outcome for outcome in self.outcomes if not outcome.n_rows]

    def summary(self) -> str:
        """Say in a few lines what is in the table, what is missing and what was left out."""
        return "\n".join([*self._about_table(), *self._about_missing(), *self._about_skipped()])

    def _about_table(self) -> list[str]:
        table = self.table
        people = table.subjects.groupby(table.y).nunique()
        epochs = table.y.value_counts()
        labels = ", ".join(
            f"{label} ({people[label]} subjects, {epochs[label]} epochs)" for label in people.index
        )
        resumed = sum(outcome.status == "resumed" for outcome in self.outcomes)
        lines = [
            f"subjects    {table.subjects.nunique()}",
            f"labels      {labels}",
            f"epochs      {len(table)}",
            f"channels    {len(table.channels)}",
            *self._about_dropped(),
            f"features    {len(table.features)} per channel",
            f"missing     {1 - table.observed.to_numpy().mean():.1%} of channel epochs",
        ]
        for label in people.index[people == 1]:
            [subject] = table.subjects[table.y == label].unique()
            lines.append(f"  class {label} has one subject only, {subject}")
        if resumed:
            lines.append(f"resumed     {resumed} of {len(self.outcomes)} recordings were finished")
        return lines

    def _about_dropped(self) -> list[str]:
        """Name the channels of the files that are not used, by reason."""
        counts: dict[str, Counter[str]] = {}
        for outcome in self.outcomes:
            for name, reason in outcome.dropped.items():
                counts.setdefault(reason, Counter())[name] += 1
        lines = []
        for reason, names in counts.items():
            named = ", ".join(f"{name} ({n})" for name, n in names.most_common(MOST_NAMED))
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            lines.append(f"  not used, {reason}: {named}{more}")
        return lines

    def _about_missing(self) -> list[str]:
        """Count channel epochs by reason, and name the channels that are hit most."""
        totals: Counter[str] = Counter()
        channels: dict[str, Counter[str]] = {}
        for outcome in self.outcomes:
            for reason, hits in outcome.reasons.items():
                totals[reason] += sum(hits.values())
                channels.setdefault(reason, Counter()).update(hits)
        lines = []
        for reason, total in totals.most_common():
            hit = sorted(channels[reason].items(), key=lambda item: (-item[1], item[0]))
            most = ", ".join(f"{name} {n}" for name, n in hit[:5])
            lines.append(f"  {reason}: {total} channel epochs (most: {most})")
        absent: Counter[str] = Counter()
        for outcome in self.outcomes:
            own = {same_name(channel) for channel in outcome.channels}
            lacking = [one for one in self.table.channels if same_name(one) not in own]
            absent.update(dict.fromkeys(lacking, outcome.n_rows))
        if total := absent.total():
            hit = sorted(absent.items(), key=lambda item: (-item[1], item[0]))
            named = ", ".join(f"{name} {n}" for name, n in hit[:MOST_NAMED] if n)
            rest = f" and {len(hit) - MOST_NAMED} more" if len(hit) > MOST_NAMED else ""
            lines.append(f"  {NOT_RECORDED}: {total} channel epochs ({named}{rest})")
        return lines

    def _about_skipped(self) -> list[str]:
        lines = []
        partly = sum(o.n_epochs - o.n_rows for o in self.outcomes if o.n_rows)
        if partly:
            lines.append(f"left out    {partly} epochs in which no channel was left")
        if self.skipped:
            lines.append(f"skipped     {len(self.skipped)} of {len(self.outcomes)} recordings")
        for outcome in self.skipped[:MOST_NAMED]:
            why = outcome.error or "no epoch has any channel left"
            lines.append(f"  {outcome.source}: {why}")
        if len(self.skipped) > MOST_NAMED:
            lines.append(f"  and {len(self.skipped) - MOST_NAMED} more")
        notes = [(o.source, note) for o in self.outcomes for note in o.notes]
        lines += [f"  note on {source}: {note}" for source, note in notes[:MOST_NAMED]]
        if len(notes) > MOST_NAMED:
            lines.append(f"  and {len(notes) - MOST_NAMED} more notes")
        return lines
