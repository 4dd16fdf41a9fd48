"""Anything at all goes into the readers and into fit: a result, or an error meant for people."""

import tempfile
import warnings
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis.extra import numpy as st_np

from idfsmec import IDFSMEC
from idfsmec.errors import InputError
from idfsmec.recordings import (
    read_bids,
    read_manifest,
    read_modma3,
    read_modma128,
    read_pred_d003,
)
from idfsmec.table import FeatureTable
from idfsmec.table.positions import plan_channels
from tests.corpus.sound import FIRST_FILE, book_bytes, files_of_format, mat_bytes
from tests.corpus.tables import csv_bytes, parquet_bytes

pytestmark = pytest.mark.long

quick = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def damaged(draw, whole, within=None):
    """Bytes that were whole: some replaced, some lost, some put in."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(min(len(content), within or len(content)) - 1, 0)))
        what = draw(st.sampled_from(["replace", "flip", "drop", "insert", "cut"]))
        if what == "replace":
            content[place : place + 1] = draw(st.binary(min_size=1, max_size=4))
        elif what == "flip" and content:
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif what == "drop":
            del content[place : place + draw(st.integers(1, 40))]
        elif what == "insert":
            content[place:place] = draw(st.binary(max_size=40))
        elif draw(st.integers(0, 4)) == 0:
            del content[place:]
    return bytes(content)


def assert_read_or_refused(read, name, content, **others):
    """Read a file; only an InputError that names it may come out."""
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for other, bytes_of_other in others.items():
            (Path(place) / other).write_bytes(bytes_of_other)
        path = Path(place) / name
        path.write_bytes(content)
        try:
            return read(path)
        except InputError as error:
            refusal = str(error)
    assert str(place) in refusal
    return None


MANIFEST = b"path,subject,label,bads\ns1.edf,s1,HC,\ns2.edf,s2,MDD,Fp1;Cz\n"


@quick
@given(damaged(MANIFEST) | st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
@example(b"path,subject,label\n~nobody/x.edf,s1,HC\n")
@example(b"path,subject,label\n.,s1,HC\n")
@example(b'path,subject,label\n"a\n')
def test_any_manifest(content):
    assert_read_or_refused(read_manifest, "study.csv", content, **{"s1.edf": b"", "s2.edf": b""})


PARTICIPANTS = b"participant_id\tgroup\tBDI\nsub-01\tHC\t3\nsub-02\tMDD\t20\n"


@quick
@given(damaged(PARTICIPANTS) | st.binary(max_size=200))
def test_any_participants_of_a_bids_tree(content):
    assert_read_or_refused(lambda path: read_bids(path.parent), "participants.tsv", content)


@quick
@given(damaged(b"participant_id\tOriginal_ID\tBDI\tSCID\nsub-001\t507\t3\tNo Interview\n"))
def test_any_participants_of_ds003478(content):
    assert_read_or_refused(lambda path: read_pred_d003(path.parent), "participants.tsv", content)


@quick
@given(damaged(b"1400000 1400001 1399999\n" * 20) | st.binary(max_size=200))
@example(b"")
@example(b"\xff\xfe1 2 3")
@example(b"1 2 3\n" + b"9" * 400 + b" 1 1\n")
def test_any_text_of_modma(content):
    assert_read_or_refused(
        lambda path: read_modma3(path.parent)[0].load(), "02010002_still.txt", content
    )


@quick
@given(damaged(csv_bytes()) | st.binary(max_size=200))
def test_any_table_in_csv(content):
    assert_read_or_refused(FeatureTable.read, "table.csv", content)


@quick
@given(damaged(b'{"format_version": 1, "info": {"a": [1]}, "dtypes": {"label": "text"}}'))
@example(b"[" * 100_000)
@example(b'{"format_version": 1e999}')
def test_any_companion_of_a_table(sidecar):
    assert_read_or_refused(
        FeatureTable.read, "table.csv", csv_bytes(), **{"table.csv.info.json": sidecar}
    )


@quick
@given(damaged(parquet_bytes()))
def test_any_table_in_parquet(content):
    assert_read_or_refused(FeatureTable.read, "table.parquet", content)


@quick
@given(damaged(book_bytes([["subject id", "type"], ["02010002", "MDD"]])))
def test_any_spreadsheet(content):
    assert_read_or_refused(
        lambda path: read_modma3(path.parent),
        "subjects_information_EEG_3channels.xlsx",
        content,
        **{"02010002_still.txt": b""},
    )


@quick
@given(damaged(mat_bytes({"a": np.eye(3), "EEG": {"data": "x.fdt", "srate": 250.0}})))
def test_any_matlab_file(content):
    assert_read_or_refused(
        lambda path: read_modma128(path.parent)[0].load(), "02010002rest.mat", content
    )


@pytest.mark.parametrize("kind", FIRST_FILE)
@settings(quick, max_examples=25)
@given(data=st.data())
def test_any_recording(kind, data):
    files = dict(files_of_format(kind))
    content = data.draw(damaged(files.pop(FIRST_FILE[kind]), within=1500))
    manifest = f"path,subject,label\n{FIRST_FILE[kind]},s1,HC\n".encode()
    assert_read_or_refused(
        lambda path: read_manifest(path.with_name("study.csv"))[0].load(),
        FIRST_FILE[kind],
        content,
        **{**files, "study.csv": manifest},
    )


@quick
@given(st.lists(st.text(max_size=12), unique=True, max_size=8))
@example(["EEG ", "__", "EEG Fp1-LE", "Fp1", "FP1"])
def test_any_channel_names_are_kept_or_dropped_and_stay_apart(names):
    plan = plan_channels(names)
    assert set(plan.renamed) | set(plan.dropped) == set(names)
    assert len(set(plan.renamed.values())) == len(plan.renamed)


# --- fit --------------------------------------------------------------------------------

LABELS = {
    "text": st.sampled_from(["MDD", "HC", ""]),
    "integers": st.integers(-2, 2),
    "truth": st.booleans(),
    "floats": st.sampled_from([0.0, 1.0, 1.5, float("nan")]),
    "mixed": st.sampled_from(["a", 1, None]),
}
NUMBERS = st.floats(allow_nan=True, allow_infinity=False, width=64) | st.sampled_from(
    [0.0, 1.0, -1.0, float("nan"), 1e-300, 1e300, float("inf")]
)


@settings(quick, max_examples=120)
@given(st.data())
def test_any_table_is_fitted_or_refused(data):
    n, d = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 6))
    X = data.draw(st_np.arrays(np.float64, (n, d), elements=NUMBERS))
    y = data.draw(st.lists(LABELS[data.draw(st.sampled_from(sorted(LABELS)))], max_size=9))
    y = (y * 9)[:n] if data.draw(st.booleans()) and y else y
    channels = data.draw(
        st.none() | st.lists(st.sampled_from("ab"), min_size=d, max_size=d).map(np.array)
    )
    frame = pd.DataFrame(X) if data.draw(st.booleans()) else X
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            selector = IDFSMEC(channels, max_iter=50).fit(frame, y)
        except (ValueError, TypeError):
            return
    assert np.isfinite(selector.scores_).all()
    assert sorted(selector.ranking_) == list(range(1, d + 1))
    assert not np.isnan(selector.channel_weights_).any()
