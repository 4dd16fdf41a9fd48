"""Which channels of a recording are used, by which names, and what became of the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idfsmec.errors import InputError, RecordingError
from idfsmec.montage import EXTRA_NAMES, channel_positions, standard_name
from idfsmec.recordings import channel_plan, montage_name, prepare_raw

if TYPE_CHECKING:
    import mne

SOME = "recording"  # what messages call one that came without a name


@dataclass(frozen=True)
class Channels:
    """EEG channels by the names they come with (``own``) and by their standard names.

    ``positions`` is None where no electrode has a place, ``dropped`` says which channels of the
    file are none of these, and why.
    """

    own: list[str]
    names: list[str]
    montage: str
    positions: NDArray[np.float64] | None
    renamed: dict[str, str]
    dropped: dict[str, str]

    def take(self, keep: NDArray[np.bool_], reason: str) -> Channels:
        """Leave out channels, and say why."""
        back = {new: old for old, new in self.renamed.items()}
        gone = [name for name, kept in zip(self.names, keep, strict=True) if not kept]
        return Channels(
            [name for name, kept in zip(self.own, keep, strict=True) if kept],
            [name for name, kept in zip(self.names, keep, strict=True) if kept],
            self.montage,
            None if self.positions is None else self.positions[keep],
            {old: new for old, new in self.renamed.items() if new not in gone},
            self.dropped | {back.get(name, name): reason for name in gone},
        )


def choose_channels(channels: Channels, wanted: str | Iterable[str], source: str) -> Channels:
    """Keep the channels that a user wants.

    Parameters
    ----------
    channels : Channels
    wanted : {"scalp", "all"} or sequence of str
        ``"scalp"`` leaves out those for which the montage has no place, if it has one for most;
        names are understood in any spelling.
    source : str
        What messages call the recording.

    Raises
    ------
    RecordingError
        If none is left.
    """
    if wanted == "all":
        return channels
    names = channels.names
    if wanted == "scalp":
        if channels.positions is None:
            return channels
        placed = np.isfinite(channels.positions).all(axis=1) | np.isin(names, EXTRA_NAMES)
        # A cap whose names the montage hardly knows has places that it does not know either.
        return channels if placed.mean() < 0.5 else channels.take(placed, "no place on the scalp")
    listed = {name for given in wanted for name in (given, standard_name(given) or given)}
    keep = np.array(
        [not listed.isdisjoint(both) for both in zip(names, channels.own, strict=True)]
    )
    if not keep.any():
        raise RecordingError(
            f"{source}: none of the channels {', '.join(wanted)} is in it. It has "
            f"{', '.join(names)}.",
            source=source,
        )
    return channels.take(keep, "not asked for")


def channels_of(measured: mne.io.BaseRaw | mne.BaseEpochs, source: str) -> Channels:
    """Give the channels as loaders prepare them, without touching the caller's object."""
    names, types = tuple(measured.ch_names), tuple(measured.get_channel_types())
    plan = channel_plan(measured)
    if set(plan.renamed.values()).issuperset(names) and set(types) == {"eeg"}:
        return _described(measured, list(names))  # a loader has done it
    try:
        channels = _standard_channels(names, types)
    except InputError as error:
        reason = str(error).removeprefix(f"{SOME}: ")
        raise RecordingError(f"{source}: {reason}", source=source) from None
    if channels.montage:
        return channels
    # No template knows these names, so the places that come with them count.
    return replace(channels, positions=_positions(measured, channels.own))


@lru_cache(maxsize=16)  # recordings of a study are alike, and MNE takes its time
def _standard_channels(names: tuple[str, ...], types: tuple[str, ...]) -> Channels:
    import mne

    info = mne.create_info(list(names), 250.0, list(types))
    stand_in = mne.io.RawArray(np.zeros((len(names), 1)), info, verbose="ERROR")
    prepared = prepare_raw(stand_in, source=SOME)
    return _described(prepared, list(channel_plan(prepared).renamed))


def _described(prepared: mne.io.BaseRaw | mne.BaseEpochs, own: list[str]) -> Channels:
    return Channels(
        own,
        list(prepared.ch_names),
        montage_name(prepared) or "",
        _positions(prepared, prepared.ch_names),
        channel_plan(prepared).changed,
        channel_plan(prepared).dropped,
    )


def _positions(
    measured: mne.io.BaseRaw | mne.BaseEpochs, names: list[str]
) -> NDArray[np.float64] | None:
    montage = measured.get_montage()
    return None if montage is None else channel_positions(names, montage)
