"""Recordings: named without loading them, read safely, made ready for features, given only once.

Ready are EEG channels only, with standard names, positions and volts.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from glob import escape
from io import SEEK_END
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._files import check_readable, refuse_oversized
from idfsmec.errors import (
    DuplicateRecordingsError,
    InputError,
    RecordingError,
    listing,
    reason_of,
)
from idfsmec.recordings.file_checks import (
    BYTES_PER_SAMPLE,
    LEAST_PAUSE,
    check_file,
    find_pauses,
    open_unpacked,
    read_edf_header,
)
from idfsmec.table.columns import refuse_alike
from idfsmec.table.positions import (
    ChannelPlan,
    channel_positions,
    choose_montage,
    on_scalp,
    plan_channels,
    standard_montage,
    standard_name,
)

if TYPE_CHECKING:
    import mne

#: What readers and programs write where pieces were put together, apart from ``BAD``.
_BOUNDARY_WORDS = ("boundary", "edge boundary", "edf boundary", "new segment")
#: Reason in a ``drop_log`` of epochs that are left out because of their condition.
OTHER_CONDITION = "OTHER CONDITION"
#: Attribute of a prepared recording with the channels of the eyes, which are no EEG.
EYES_BESIDE = "_idfsmec_eyes"
_MODMA = re.compile(rb"\s*-?\d+[ \t]+-?\d+[ \t]+-?\d+\s*\n")  # a line of three whole numbers
_EYES = re.compile(r"EOG|^[HV]EO[LRUD]?$", re.IGNORECASE)


@dataclass(frozen=True)
class Recording:
    """One EEG recording of one subject, loaded only when asked.

    Parameters
    ----------
    subject : str
        Who was recorded; recordings of one subject are never in training and test of one fold.
    label : str
        The class of this recording, such as ``"MDD"``.
    load : callable
        Gives the recording as an :class:`mne.io.BaseRaw`, or as :class:`mne.BaseEpochs` where it
        was cut before, ready for features: EEG channels only, standard names, volts,
        ``info["bads"]`` set. It can be pickled, so that worker processes can load.
    source : str
        Where it comes from, for messages: a path, or a few words.
    session, condition : str, optional
        Free names that distinguish recordings of one subject.
    bads : tuple of str
        Channels known to be bad, as written by the user. ``load`` has them in
        ``info["bads"]`` under their standard names.
    files : tuple of Path
        All files whose bytes make up the recording; none for simulated ones.
    variant : str
        What determines the signal in addition to the bytes, such as the unit assumed or the part
        cut out.
    site : str, optional
        The hospital.
    reject_log : Path, optional
        The reject log that autoreject has saved for these epochs.
    details : mapping of str to str
        Further facts about it, such as age and sex: one column of the table's ``rows`` each. Text;
        empty where it is not known.

    Examples
    --------
    >>> from functools import partial
    >>> import mne, numpy as np
    >>> def noise(seed):
    ...     samples = np.random.default_rng(seed).normal(scale=1e-5, size=(1, 500))
    ...     return mne.io.RawArray(samples, mne.create_info(["Cz"], 250.0, "eeg"), verbose=False)
    >>> recording = Recording("s1", "HC", partial(noise, 0), "white noise")
    >>> recording.load().ch_names
    ['Cz']
    """

    subject: str
    label: str
    load: Callable[[], Any] = field(compare=False)
    source: str
    session: str | None = None
    condition: str | None = None
    bads: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    variant: str = ""
    site: str | None = None
    details: Mapping[str, str] = field(default_factory=dict, hash=False)
    reject_log: Path | None = None

    def fingerprint(self) -> str | None:
        """Hash of all that determines the loaded signal: the key for a cache of its features.

        Moving or renaming files does not change it; changing their bytes does. None for a
        recording without files.
        """
        if not self.files:
            return None
        parts = [self.variant, ";".join(self.bads), *(hash_file(path) for path in self.files)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def files_of(path: Path) -> tuple[Path, ...]:
    """List all files that make up the recording named by ``path``, that one first."""
    if path.is_dir():
        return tuple(sorted(file for file in path.rglob("*") if file.is_file()))
    if not path.is_file():
        return ()  # a pipe or a device: whoever opens it may wait for ever
    return (path, *(partner for partner in _partners(path) if partner.is_file()))


def _partners(path: Path) -> list[Path]:
    """Name the files that may belong to a recording, whether they are there or not."""
    suffix = path.suffix.lower()
    if suffix in (".vhdr", ".ahdr"):
        content = path.read_bytes()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("latin-1")  # "Codepage=ANSI"
        named = r"^[ \t]*(?:DataFile|MarkerFile)[ \t]*[=:][ \t]*(.+?)\s*$"
        names = re.findall(named, text, flags=re.MULTILINE | re.IGNORECASE)
        return [path.parent / name.replace("$b", path.stem) for name in names]
    if suffix == ".set":
        return [path.with_suffix(ending) for ending in (".fdt", ".FDT", ".dat")]
    if suffix in (".fif", ".gz"):  # long recordings go on in other files
        of_bids = escape(path.name).replace("_split-01_", "_split-[0-9]*_")
        stem = path.stem.removesuffix(".fif")
        numbered = f"{escape(stem)}-[0-9]*{path.name.removeprefix(stem)}"
        parts = [*path.parent.glob(of_bids), *path.parent.glob(numbered)]
        return sorted(part for part in parts if part.name != path.name)
    return []


def read_with_mne(path: Path) -> mne.io.BaseRaw | mne.BaseEpochs:
    """Open a file by its ending; epochs are FIF files named so, and ``.set`` files of trials."""
    import mne

    if holds_epochs(path) and path.suffix.lower() != ".set":
        _refuse_oversized_epochs(path)
        return mne.read_epochs(path, verbose="ERROR")
    if path.suffix.lower() == ".txt" and _MODMA.match(path.read_bytes()[:200]):
        raise InputError(
            f"{path}: this is a text file of MODMA with three channels, which states neither "
            "sampling rate nor unit. Name the data set and the folder of these files: idfsmec "
            f"features modma3 --data {path.parent}."
        )
    try:
        raw = mne.io.read_raw(path, verbose="ERROR")
    except TypeError as error:
        if path.suffix.lower() == ".set" and "trials" in str(error):
            _refuse_oversized_epochs(path)
            return mne.read_epochs_eeglab(path, verbose="ERROR")
        raise
    check_signals(raw)
    return raw


def _refuse_oversized_epochs(path: Path) -> None:
    size = 0
    for part in files_of(path):
        with open_unpacked(part) as file:
            size += file.seek(0, SEEK_END)
    refuse_oversized("epochs", size // 4)  # bytes of a number


def holds_epochs(path: Path) -> bool:
    """Return whether a file may hold epochs, by its name; some ``.set`` files do."""
    return re.search(r"([-_]epo\.fif(\.gz)?|\.set)$", path.name, flags=re.IGNORECASE) is not None


def epoch_conditions(epochs: mne.BaseEpochs) -> list[str]:
    """Name the condition of each epoch: by its metadata, else by its event; none if unnamed."""
    if getattr(epochs, "metadata", None) is not None:
        for column in epochs.metadata:
            if str(column).casefold() == "condition":
                conditions: list[str] = epochs.metadata[column].astype(str).tolist()
                return conditions
    names = {code: name for name, code in getattr(epochs, "event_id", {}).items()}
    if set(names.values()) <= {"1"}:  # what MNE calls events that it makes itself
        return []
    return [names.get(code, str(code)) for code in epochs.events[:, 2]]


def file_recording(
    path: Path,
    subject: str,
    label: str,
    read: Callable[[Path], Any] = read_with_mne,
    **fields: Any,
) -> Recording:
    """Name the recording in a file, which ``read`` (picklable) opens; ``about`` has its fields."""
    load = partial(_load_raw, path, read, fields.get("bads", ()))
    files, log = fields.pop("files", files_of(path)), fields.pop("reject_log", None)
    if log is None and holds_epochs(path):  # beside s01-epo.fif, s01-reject-log.npz
        stem = path.stem.removesuffix(".fif")
        names = (stem, re.sub(r"[-_]epo$", "", stem, flags=re.IGNORECASE))
        endings = ("", "-reject-log", "_reject-log", "_rejectlog", "_autoreject")
        logs = [path.with_name(f"{name}{ending}.npz") for name in names for ending in endings]
        log = next((each for each in logs if each.is_file()), None)
    fields["files"] = files if log is None else (*files, log)
    return Recording(subject, label, load, str(path), reject_log=log, **fields)


def _load_raw(path: Path, read: Callable[[Path], Any], bads: tuple[str, ...]) -> Any:
    """Read and prepare a recording; what goes wrong is a RecordingError that names the file."""
    if not path.exists():
        raise RecordingError(f"{path}: there is no such file.")
    try:
        # Also what lies beside under its name, what a header names, and what is in a folder.
        inside = path.rglob("*") if path.is_dir() else _partners(path) if path.is_file() else ()
        parts = list(inside)
        check_readable(path, *path.parent.glob(f"{escape(path.stem)}.*"), *parts)
        for part in parts:
            # The file itself may be a link to elsewhere, as DataLad has them.
            if not part.parent.resolve().is_relative_to(path.parent.resolve()):
                raise InputError(
                    f"{path}: names {part} as part of the recording, which lies outside its "
                    "folder. Put the files into one folder, and correct the header."
                )
        for part in files_of(path) if path.is_file() else ():
            check_file(part)
        return prepare_raw(read(path), bads=bads, source=str(path))
    except InputError as error:
        named = str(error).startswith(str(path))
        raise RecordingError(str(error) if named else f"{path}: {error}") from error
    except Exception as error:
        # Readers of binary files raise anything on a damaged one, down to struct.error.
        raise RecordingError(
            f"{path}: MNE cannot open this recording ({reason_of(error)}). Check that the file is "
            "whole, of a format mne.io.read_raw knows, and lies with the files that belong to it."
        ) from error


def check_signals(raw: mne.io.BaseRaw) -> None:
    """Refuse signals that no machine holds, and an ``.fdt`` file that cannot be the header's."""
    hours = raw.n_times / raw.info["sfreq"] / 3600
    n_values = len(raw.ch_names) * raw.n_times
    refuse_oversized(f"{len(raw.ch_names)} channels of {hours:,.1f} hours", n_values)
    expected = 4 * n_values
    for path in (Path(name) for name in raw.filenames if name):
        check_readable(path)
        if path.suffix.lower() in BYTES_PER_SAMPLE:
            header = read_edf_header(path)
            # Channels whose physical minimum is the maximum are in no unit: they become bad.
            labels = zip(header.labels, header.has_range, strict=True)
            without = {label.decode("latin-1").strip() for label, known in labels if not known}
            raw.info["bads"] += [name for name in raw.ch_names if name in without]
        if path.suffix.lower() == ".fdt" and path.stat().st_size != expected:
            raise InputError(
                f"{path.with_suffix('.set')}: {path.name} has {path.stat().st_size} bytes "
                f"instead of {expected} ({len(raw.ch_names)} channels, {raw.n_times} samples). "
                "Copy both files again from their source."
            )


def find_boundaries(raw: mne.io.BaseRaw) -> NDArray[np.float64]:
    """Find when a recording was interrupted, by annotations and EDF+D records, in seconds."""
    times = [
        mark["onset"]
        for mark in raw.annotations
        if mark["description"].casefold().removeprefix("bad ").strip().startswith(_BOUNDARY_WORDS)
    ]
    if len(raw.filenames) == 1 and raw.filenames[0]:
        times += find_pauses(Path(raw.filenames[0]))
    onsets = np.array(times, dtype=np.float64) - raw.first_time
    seconds: NDArray[np.float64] = np.unique(np.round(onsets, 6))
    length = float(raw.n_times / raw.info["sfreq"])
    return seconds[(seconds > LEAST_PAUSE) & (seconds < length - LEAST_PAUSE)]


def prepare_raw(
    raw: mne.io.BaseRaw, *, bads: Iterable[str] = (), source: str = "recording"
) -> mne.io.BaseRaw:
    """Prepare a recording for feature extraction, as every reader does.

    EEG channels are picked and get their standard names, a montage is attached, bad channels are
    marked, and names, birth dates and the day of the recording are removed. Channels without a
    place on the scalp, such as an amplifier's extra inputs, get MNE's type "misc": by default
    neither MNE nor feature extraction takes them for EEG. Signals are not changed; they are in
    volts, as MNE's readers give them. :func:`channel_plan` returns what was done with the
    channels.

    Parameters
    ----------
    raw : mne.io.BaseRaw
        Stays as it is.
    bads : iterable of str
        Bad channels, by their name in the file or by their standard name.
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
    earlier = channel_plan(raw)
    named = set(earlier.renamed.values())
    types = [
        "eeg" if kind == "misc" and name in named else kind
        for name, kind in zip(raw.ch_names, raw.get_channel_types(), strict=True)
    ]
    plan = plan_channels(raw.ch_names, types)
    if not plan.renamed:
        names = ", ".join(f"{name} ({reason})" for name, reason in plan.dropped.items())
        raise InputError(
            f"{source}: no EEG channel found. Its channels are: {names or 'none'}. "
            "Rename them to 10-20 names, or set their type to EEG."
        )
    of_eyes = eye_channels(raw)
    eyes = raw.copy().pick(of_eyes, verbose="ERROR") if of_eyes else None
    raw = raw.copy()
    marked = [*raw.info["bads"], *bads]
    raw.info["bads"] = []
    raw.pick(list(plan.renamed), verbose="ERROR")
    _set_types(raw, "eeg", raw.ch_names)
    raw.rename_channels(plan.renamed, verbose="ERROR")
    raw.info["bads"] = _resolve_bads(marked, plan, source)
    montage = choose_montage(raw.ch_names)
    if montage is not None:
        # Template positions replace those in the file, so that the channels of all recordings of
        # a study lie in one and the same head. Where no template knows the names, they stay.
        template = standard_montage(montage)
        known = set(template.ch_names)
        for channel in raw.info["chs"]:
            if channel["ch_name"] not in known:
                channel["loc"][:] = float("nan")
        raw.set_montage(template, on_missing="ignore", verbose="ERROR")
    if (placed := raw.get_montage()) is not None:
        without = ~on_scalp(raw.ch_names, channel_positions(raw.ch_names, placed))
        _set_types(raw, "misc", compress(raw.ch_names, without))
    _anonymise(raw)
    # After a second preparation names are still those of the file.
    in_file = {new: old for old, new in earlier.renamed.items()}
    renamed = {in_file.get(old, old): new for old, new in plan.renamed.items()}
    dropped = {in_file.get(old, old): reason for old, reason in plan.dropped.items()}
    plan = ChannelPlan(renamed, earlier.dropped | dropped, montage)
    # Plain containers: MNE hashes and measures whatever is in there.
    raw.info["temp"] = {**(raw.info.get("temp") or {}), "idfsmec": asdict(plan)}
    if eyes is not None:  # blinks are counted in them
        _anonymise(eyes)
        setattr(raw, EYES_BESIDE, eyes)
    return raw


def _set_types(raw: mne.io.BaseRaw, kind: str, names: Iterable[str]) -> None:
    raw.set_channel_types(dict.fromkeys(names, kind), on_unit_change="ignore", verbose="ERROR")


def _anonymise(raw: mne.io.BaseRaw) -> None:
    """Remove whatever the header says about who was recorded, when and by whom, in place."""
    import mne

    raw.info["subject_info"] = None
    with warnings.catch_warnings():
        # MNE warns where there is no date to remove, which is what is wanted.
        warnings.simplefilter("ignore", RuntimeWarning)
        if raw.annotations is None:  # epochs, which then have no date to move either
            mne.io.anonymize_info(raw.info, verbose="ERROR")
        else:
            raw.anonymize(verbose="ERROR")


def eye_channels(raw: mne.io.BaseRaw) -> list[str]:
    """Name the channels of the eyes, by type or by name."""
    kinds = zip(raw.ch_names, raw.get_channel_types(), strict=True)
    return [name for name, kind in kinds if kind == "eog" or _EYES.search(name)]


def _resolve_bads(bads: list[str], plan: ChannelPlan, source: str) -> list[str]:
    """Find bad channels by either of their names; those dropped anyway do not matter."""
    new_names = set(plan.renamed.values())
    resolved: dict[str, None] = {}
    for bad in bads:
        if bad in plan.dropped:
            continue
        name = plan.renamed.get(bad) or (bad if bad in new_names else standard_name(bad))
        if name in new_names:
            resolved[str(name)] = None
        elif name is None or name not in map(standard_name, plan.dropped):
            raise InputError(
                f"{source}: the bad channel {bad!r} is not in the recording. "
                f"It has {', '.join(plan.renamed)}."
            )
    return list(resolved)


def channel_plan(raw: mne.io.BaseRaw) -> ChannelPlan:
    """Return what :func:`prepare_raw` did with the channels: names, reasons, the montage."""
    return ChannelPlan(**(raw.info.get("temp") or {}).get("idfsmec", {}))


# --- the same recording twice -------------------------------------------------------------


def check_spelling(recordings: Sequence[Recording], where: str = "") -> None:
    """Refuse names that only look different: ``s1`` and ``s01`` may be on both sides of a fold."""
    for what in ("subject", "label", "session", "condition", "site"):
        first: dict[str, str] = {}
        for recording in recordings:
            if name := getattr(recording, what):
                first.setdefault(name, Path(recording.source).name)
        refuse_alike(first, what, where)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_duplicates(recordings: Iterable[Recording]) -> list[list[Recording]]:
    """Group recordings that hold the same signal, byte for byte; groups of two or more.

    Only files of the same size are read. Parts cut from one file (``Recording.variant``) are
    different recordings.
    """
    groups = [[recording for recording in recordings if recording.files]]
    for look in (lambda path: path.stat().st_size, cache(hash_file)):
        finer: dict[Hashable, list[Recording]] = defaultdict(list)
        for number, group in enumerate(groups):
            for recording in group:
                looks = tuple(look(path) for path in _signal_files(recording))
                finer[number, recording.variant, looks].append(recording)
        groups = [group for group in finer.values() if len(group) > 1]
    return groups


def _signal_files(recording: Recording) -> tuple[Path, ...]:
    """Pick the files with the signal; all of them, where header and signal are one."""
    first, *partners = recording.files
    if first.suffix.lower() in (".vhdr", ".ahdr", ".set"):
        # The header names the file with the signal, so it changes when both are renamed.
        signal = tuple(path for path in partners if path.suffix.lower() in (".eeg", ".fdt"))
        if signal:
            return signal
    beside = (".tsv", ".json", ".npz")
    return tuple(path for path in recording.files if path.suffix.lower() not in beside)


_MOST_GROUPS = 5  # are named


def check_duplicates(recordings: Sequence[Recording]) -> list[Recording]:
    """Refuse recordings that two subjects share, and leave out repetitions of one subject.

    A recording that counts for two subjects can be in training and test, which makes any score too
    high.

    Parameters
    ----------
    recordings : sequence of Recording

    Returns
    -------
    list of Recording
        Without those whose signal an earlier one of the same subject and label holds, byte for
        byte; a warning names them.

    Raises
    ------
    DuplicateRecordingsError
        If two subjects share a recording.
    """
    groups = find_duplicates(recordings)
    shared = [group for group in groups if len({(c.subject, c.label) for c in group}) > 1]
    if shared:
        listed = "; ".join(_listed(group) for group in shared[:_MOST_GROUPS])
        if len(shared) > _MOST_GROUPS:
            listed += f"; {len(shared) - _MOST_GROUPS} more groups"
        raise DuplicateRecordingsError(
            f"The same recording is given for different participants or labels: {listed}. Remove "
            "all but one of each; otherwise the recording can be in training and test. If two "
            "participants are one person, give them one name."
        )
    return leave_out_copies(recordings, groups)


def leave_out_copies(
    recordings: Sequence[Recording], groups: Sequence[Sequence[Recording]]
) -> list[Recording]:
    """Keep the first recording of each group, and warn of the others."""
    copies = [copy for group in groups for copy in group[1:]]
    if copies:
        warnings.warn(
            "The same recording is given more than once and counts once; left out: "
            f"{_listed(copies)}.",
            stacklevel=3,
        )
    left_out = {id(copy) for copy in copies} - {id(group[0]) for group in groups}
    distinct = {id(recording): recording for recording in recordings}
    return [recording for key, recording in distinct.items() if key not in left_out]


def _listed(recordings: Sequence[Recording]) -> str:
    return listing([f"{copy.source} (participant {copy.subject})" for copy in recordings])
