"""Eyes open and eyes closed: cut the minutes of one condition out of a resting recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from idfsmec.errors import InputError
from idfsmec.recordings.releases._pred_labels import parse_number

if TYPE_CHECKING:
    import mne

# A block is a minute of triggers, one every half second (1-6) and every two seconds (11-16).
CONDITIONS: dict[str, frozenset[int]] = {
    "eyes-open": frozenset({2, 4, 6, 12, 14, 16}),
    "eyes-closed": frozenset({1, 3, 5, 11, 13, 15}),
}
LONGEST_GAP = 3.0
TRIGGER_STEP = 0.5


def condition_spans(
    onsets: list[float], descriptions: list[str], condition: str
) -> list[tuple[float, float]]:
    """Find when a condition begins and ends.

    A span goes on as long as triggers of its condition follow one another within three
    seconds; a trigger of the other condition or a boundary ends it.

    Returns
    -------
    list of (float, float)
        In seconds.

    Examples
    --------
    >>> condition_spans([1.0, 1.5, 2.0, 9.0, 9.5], ["2", "12", "2", "1", "1"], "eyes-open")
    [(1.0, 2.5)]
    """
    wanted = CONDITIONS[condition]
    other = frozenset().union(*CONDITIONS.values()) - wanted
    spans: list[tuple[float, float]] = []
    going_on = False
    for onset, description in sorted(zip(onsets, descriptions, strict=True)):
        number = parse_number(description)
        if number in other or description.casefold().endswith("boundary"):
            if going_on:
                spans[-1] = (spans[-1][0], min(spans[-1][1], onset))
            going_on = False
        elif number in wanted:
            if going_on and onset - spans[-1][1] <= LONGEST_GAP - TRIGGER_STEP:
                spans[-1] = (spans[-1][0], onset + TRIGGER_STEP)
            else:
                spans.append((onset, onset + TRIGGER_STEP))
            going_on = True
    return spans


def keep_condition(raw: mne.io.BaseRaw, condition: str, source: str) -> mne.io.BaseRaw:
    """Keep the spans of one condition and join them.

    MNE marks the joints as ``BAD boundary`` and ``EDGE boundary``, so that filters do not run
    over them and epochs across them can be dropped.
    """
    import mne

    notes = raw.annotations
    end = raw.times[-1]
    first = raw.first_time
    onsets = [float(onset) - first for onset in notes.onset]
    spans = [
        (max(start, 0.0), min(stop, end))
        for start, stop in condition_spans(onsets, list(notes.description), condition)
        if start < end and stop - start > TRIGGER_STEP
    ]
    if not spans:
        raise InputError(
            f"{source}: no trigger of condition {condition!r} found. Leave the condition out to "
            "use the whole recording."
        )
    parts = [raw.copy().crop(start, stop, include_tmax=False) for start, stop in spans]
    return mne.concatenate_raws(parts, verbose="ERROR")
