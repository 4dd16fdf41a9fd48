"""From what a file holds to what features need: EEG only, standard names, places, volts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from idfsmec.errors import InputError
from idfsmec.montage import (
    ChannelPlan,
    choose_montage,
    plan_channels,
    standard_montage,
    standard_name,
)

if TYPE_CHECKING:
    import mne


def prepare_raw(
    raw: mne.io.BaseRaw,
    *,
    bads: Iterable[str] = (),
    montage: str | None = None,
    source: str = "recording",
) -> mne.io.BaseRaw:
    """Make a recording ready for features: every loader ends with this.

    EEG channels are picked and get their standard names, a montage is attached, bad channels
    are marked, and names, birth dates and the day of the recording are removed. Signals are
    left as they are, in volts, which is what MNE's readers give. What became of the channels
    can be asked with :func:`channel_plan`.

    Parameters
    ----------
    raw : mne.io.BaseRaw
        Stays as it is.
    bads : iterable of str
        Bad channels, by their name in the file or by their standard name.
    montage : str, optional
        A montage built into MNE. By default the one that fits the names.
    source : str
        What error messages call the recording.

    Returns
    -------
    mne.io.BaseRaw
        A copy. Prepared again, it stays the same.

    Raises
    ------
    InputError
        If no EEG channel is found, or a bad channel is not in the recording.

    Examples
    --------
    >>> import mne, numpy as np
    >>> info = mne.create_info(["EEG Fp1-LE", "EEG T3-LE", "EKG"], 250.0, "eeg")
    >>> raw = mne.io.RawArray(np.zeros((3, 500)), info, verbose=False)
    >>> ready = prepare_raw(raw, bads=["T3"])
    >>> ready.ch_names, ready.info["bads"]
    (['Fp1', 'T7'], ['T7'])
    >>> channel_plan(ready).renamed
    {'EEG Fp1-LE': 'Fp1', 'EEG T3-LE': 'T7'}
    """
    return prepare_own(raw.copy(), bads=bads, montage=montage, source=source)


def prepare_own(
    raw: mne.io.BaseRaw,
    *,
    bads: Iterable[str] = (),
    montage: str | None = None,
    source: str = "recording",
) -> mne.io.BaseRaw:
    """Do what :func:`prepare_raw` does, in place: for loaders, whose Raw nobody else has."""
    plan = plan_channels(raw.ch_names, raw.get_channel_types())
    if not plan.renamed:
        names = ", ".join(f"{name} ({reason})" for name, reason in plan.dropped.items())
        raise InputError(
            f"{source}: no EEG channel found. Its channels are: {names or 'none'}. "
            "Rename them to 10-20 names, or set their type to EEG."
        )
    marked = [*raw.info["bads"], *bads]
    raw.info["bads"] = []
    raw.pick(list(plan.renamed), verbose="ERROR")
    types = dict.fromkeys(raw.ch_names, "eeg")
    raw.set_channel_types(types, on_unit_change="ignore", verbose="ERROR")
    raw.rename_channels(plan.renamed, verbose="ERROR")
    raw.info["bads"] = _resolve_bads(marked, plan, source)
    montage = _attach_montage(raw, montage)
    _forget_the_person(raw)
    plan = _after(channel_plan(raw), plan)
    raw.info["temp"] = {
        "idfsmec": {"renamed": plan.renamed, "dropped": plan.dropped, "montage": montage}
    }
    return raw


def _after(earlier: ChannelPlan, later: ChannelPlan) -> ChannelPlan:
    """Join two plans, so that names are still those of the file after a second preparation."""
    names = {new: old for old, new in earlier.renamed.items()}
    return ChannelPlan(
        {names.get(old, old): new for old, new in later.renamed.items()},
        earlier.dropped | {names.get(old, old): why for old, why in later.dropped.items()},
    )


def _resolve_bads(bads: list[str], plan: ChannelPlan, source: str) -> list[str]:
    """Find bad channels by either of their names; those dropped anyway do not matter."""
    new_names = set(plan.renamed.values())
    found: dict[str, None] = {}
    for bad in bads:
        if bad in plan.dropped:
            continue
        name = plan.renamed.get(bad) or (bad if bad in new_names else standard_name(bad))
        if name not in new_names:
            if standard_name(bad) in {standard_name(dropped) for dropped in plan.dropped} - {None}:
                continue
            raise InputError(
                f"{source}: the bad channel {bad!r} is not in the recording. "
                f"It has {', '.join(plan.renamed)}."
            )
        found[str(name)] = None
    return list(found)


def _attach_montage(raw: mne.io.BaseRaw, montage: str | None) -> str | None:
    """Place the channels by a template and name the template.

    Template positions replace those in the file, so that the channels of all recordings of a
    study lie in one and the same head. A recording whose names no template knows keeps its
    own positions.
    """
    montage = montage or choose_montage(raw.ch_names)
    if montage is None:
        return None
    template = standard_montage(montage)
    known = set(template.ch_names)
    for channel in raw.info["chs"]:
        if channel["ch_name"] not in known:
            channel["loc"][:] = float("nan")
    raw.set_montage(template, on_missing="ignore", verbose="ERROR")
    return montage


def _forget_the_person(raw: mne.io.BaseRaw) -> None:
    """Remove whatever the header says about who was recorded, when and by whom."""
    raw.info["subject_info"] = None
    with warnings.catch_warnings():
        # MNE warns where there is no date to remove, which is what is wanted.
        warnings.simplefilter("ignore", RuntimeWarning)
        raw.anonymize(verbose="ERROR")


def _notes(raw: mne.io.BaseRaw) -> dict[str, Any]:
    return (raw.info.get("temp") or {}).get("idfsmec", {})


def channel_plan(raw: mne.io.BaseRaw) -> ChannelPlan:
    """Tell what :func:`prepare_raw` did with the channels of a recording."""
    notes = _notes(raw)
    return ChannelPlan(dict(notes.get("renamed", {})), dict(notes.get("dropped", {})))


def montage_name(raw: mne.io.BaseRaw) -> str | None:
    """Name the montage that :func:`prepare_raw` attached."""
    return _notes(raw).get("montage")
