"""From recordings to a feature table: load, find what is missing, compute, put together."""

from idfsmec.extraction._options import ExtractionOptions
from idfsmec.extraction._outcome import Extraction, Outcome
from idfsmec.extraction._recording import RecordingFeatures, extract_recording
from idfsmec.extraction._run import extract_table
from idfsmec.extraction._sources import DATA_SETS, find_recordings
from idfsmec.extraction._to_file import check_output, extract_to_file

__all__ = [
    "extract_table",
    "extract_to_file",
    "check_output",
    "Extraction",
    "Outcome",
    "ExtractionOptions",
    "extract_recording",
    "RecordingFeatures",
    "find_recordings",
    "DATA_SETS",
]
