"""A BIDS derivative folder: description, participants, and a sidecar for every column."""

import json

import pandas as pd
import pytest

from idfsmec import FeatureTable
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.evaluation import add_audit
from idfsmec.report import write_derivative
from tests.evaluation.auditing.cohorts import audited


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("derivative")
    table = audited(20, 2)
    results = add_audit({"mine": table}, folder / "results", n_splits=4, n_jobs=1)
    source = "bids::../rawdata"
    return table, write_derivative(folder / "out", table, results, name="mine", source=source)


def test_the_data_set_describes_itself(written):
    _, out = written
    described = json.loads((out / "dataset_description.json").read_text("utf-8"))
    assert described["DatasetType"] == "derivative"
    assert described["GeneratedBy"][0]["Name"] == "idfsmec"
    assert described["SourceDatasets"] == [{"URL": "bids::../rawdata"}]


@pytest.mark.parametrize("name", ["participants", "desc-features_eeg"])
def test_every_column_is_described(written, name):
    _, out = written
    frame = pd.read_csv(out / f"{name}.tsv", sep="\t", na_values="n/a")
    sidecar = json.loads((out / f"{name}.json").read_text("utf-8"))
    assert list(frame.columns) == list(sidecar)
    assert all(one["Description"] for one in sidecar.values())


def test_people_and_numbers_are_those_of_the_table(written):
    table, out = written
    people = pd.read_csv(out / "participants.tsv", sep="\t")
    assert people["participant_id"].tolist() == [f"sub-s{i:02d}" for i in range(20)]
    features = pd.read_csv(out / "desc-features_eeg.tsv", sep="\t")
    assert features["F3__a"].to_numpy() == pytest.approx(table.X["F3__a"].to_numpy())
    assert json.loads((out / "desc-audit_eeg.json").read_text("utf-8"))["level"]


def test_it_is_not_replaced_unasked_and_names_must_differ(written, tmp_path):
    table, out = written
    with pytest.raises(ExistingFileError):
        write_derivative(out, table)
    X = pd.DataFrame({"Cz__a": [1.0, 2.0]})
    twins = FeatureTable(X, pd.Series(["a", "b"]), pd.Series(["s-1", "s_1"]))
    with pytest.raises(InputError, match="BIDS name"):
        write_derivative(tmp_path, twins)
