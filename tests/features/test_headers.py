"""Headers against the manifest: compared where the files are, and kept as counts only."""

import json

import pytest

from idfsmec.audit import recording_variables
from idfsmec.features import FeatureSettings, extract_table
from idfsmec.recordings import read_manifest, simulate_cohort

QUICK = FeatureSettings(features=["variance"])


@pytest.fixture
def study(tmp_path):
    """Write a study of four EDF files with these patients and recordings in their headers."""
    raws = [
        recording.load()
        for recording in simulate_cohort(4, 3, duration=10, random_state=0).recordings
    ]

    def write(patients, texts=("", "", "", ""), condition="eyes-closed"):
        lines = ["path,subject,label,condition"]
        for i, (raw, patient, text) in enumerate(zip(raws, patients, texts, strict=True)):
            path = tmp_path / f"s{i}.edf"
            raw.export(path, overwrite=True, verbose="error")
            content = bytearray(path.read_bytes())
            content[8:88], content[88:168] = (f"{word:<80}".encode() for word in (patient, text))
            path.write_bytes(content)
            lines.append(f"s{i}.edf,s{i},{'HC' if i < 2 else 'MDD'},{condition}")
        (tmp_path / "study.csv").write_text("\n".join(lines))
        return extract_table(read_manifest(tmp_path / "study.csv"), QUICK)

    return write


def test_a_name_in_two_subjects_files_is_counted_and_not_kept(study):
    made = study(["Jane Doe", "X X X Jim_Poe", "jane doe", "P4 F 02-MAY-1951 Ann_Roe"])
    assert recording_variables(made.table)["shared_name"].tolist() == [1, 0, 1, 0]
    assert "headers     2 have a name that is in headers of another participant" in made.summary()
    kept = json.dumps(made.table.info) + made.summary()
    assert not any(name in kept for name in ("Jane", "jane", "Poe", "Roe", "1951"))


def test_what_stands_for_nobody_is_no_name(study):
    for patient in ("X X X X", "", "Anonymous", "EEG system 4"):
        made = study([patient] * 4)
        assert "headers" not in made.summary()


def test_a_header_that_names_another_condition_is_counted(study):
    texts = ["EEG EO", "rest, eyes closed", "Eyes-Open", "EC"]
    made = study(["a", "b", "c", "d"], texts)
    assert recording_variables(made.table)["other_condition"].tolist() == [1, 0, 1, 0]
    assert "headers     2 name another condition than the manifest" in made.summary()
    assert "headers" not in study(["a", "b", "c", "d"], texts, condition="").summary()
