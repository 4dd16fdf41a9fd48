"""What we write as a BIDS derivative, judged by the schema of BIDS and by mne-bids."""

import json

import mne_bids
import pytest
from bidsschematools.schema import load_schema
from bidsschematools.validator import validate_bids

from idfsmec.features import extract_table, write_derivative
from idfsmec.recordings import read_manifest

pytestmark = pytest.mark.long


def test_the_names_and_the_description_are_what_bids_wants(study, tmp_path):
    lines = study.read_text().splitlines()
    names = ["condition", "EC", "EC", "EO", "EO"]
    study.write_text("\n".join(f"{line},{x}" for line, x in zip(lines, names, strict=True)))
    table = extract_table(read_manifest(study)).table
    root = write_derivative(table, tmp_path / "idfsmec", source="https://example.org/study")
    for path in sorted(root.rglob("sub-*_features.tsv")):
        entities = mne_bids.get_entities_from_fname(path, on_error="raise")
        assert entities["task"] in ("EC", "EO")
        assert path.parent.parent.name == f"sub-{entities['subject']}"
    about = json.loads((root / "dataset_description.json").read_text())
    assert {"Name", "BIDSVersion", "GeneratedBy", "DatasetType"} <= set(about)
    for key in about:
        assert key in {str(one.name) for one in load_schema().objects.metadata.values()}
    unknown = {path.rsplit("/", 1)[-1] for path in validate_bids(str(root))["path_tracking"]}
    ignored = {path.name for path in root.rglob("*desc-idfsmec*")} | {".bidsignore"}
    assert unknown <= ignored
