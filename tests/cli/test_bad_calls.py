"""Bad usage and bad input: exit code 2, one line that names what is wrong and what to do."""

import pytest
from typer.testing import CliRunner

from idfsmec.cli import app

pytestmark = pytest.mark.slow

runner = CliRunner()

FILES = {
    "t.csv": "subject,label,F3__a,F3__b,O1__a\ns1,MDD,1,2,3\ns2,HC,2,1,4\ns3,MDD,0,2,5\n"
    "s4,HC,3,1,1\n",
    "one.csv": "subject,label,F3__a\ns1,MDD,1\ns2,MDD,2\n",
    "nolabel.csv": "subject,F3__a\ns1,1\n",
    "junk.parquet": "hello",
    "empty.csv": "",
    "nolabels.csv": "path,subject\nx.edf,s1\n",
    "nofile.csv": "path,subject,label\nx.edf,s1,MDD\n",
    "junk.skops": "hello",
    "model.html": "mine",
    "ranking.csv": "mine",
    "table.parquet": "mine",
    "own/results.csv": "mine",
    "demo/report.html": "mine",
}

CALLS = [
    # usage
    ("nonsense", "No such command 'nonsense'. See `idfsmec --help`."),
    ("selct t.csv", "Did you mean 'select'? See"),
    ("--nonsense", "No such option|--nonsense"),
    ("select", "Missing argument 'TABLE'. See `idfsmec select --help`."),
    ("train", "Missing argument 'TABLE'"),
    ("predict", "Missing argument 'MODEL'"),
    ("predict junk.skops", "Missing argument"),
    ("select t.csv --k abc", "Invalid value for '--k'"),
    ("select t.csv --tun", "No such option|--tun"),
    ("features", "Missing argument"),
    ("features nofile.csv --on-error perhaps", "'--on-error'"),
    ("benchmark", "Missing argument 'TABLE'"),
    ("benchmark t.csv --folds person", "'subject', 'sample'"),
    ("reproduce modma3", "Missing option '--data'"),
    ("reproduce modma5 --data .", "'modma3', 'modma128', 'pred-d003'"),
    ("demo --seed x", "'--seed'"),
    # values
    ("select t.csv -o r.parquet", "r.parquet: a ranking is written as CSV"),
    ("select t.csv -o r.csv --k 0", "--k must be at least 1"),
    ("select t.csv -o r.csv --lam -1", "error: --lam -1.0: give a float in the range [0.0, inf)."),
    (
        "select t.csv -o r.csv --gamma 1",
        "error: --gamma 1.0: give a float in the range (1.0, inf).",
    ),
    ("select t.csv -o r.csv --resamples 7", "--resamples 7: give an even number"),
    ("select t.csv -o r.csv --seed -1", "--seed -1: give a whole number"),
    ("features nofile.csv -o x.csv --jobs 0", "--jobs 0: give 1 or more, or -1"),
    ("features nofile.csv -o x.csv --band alpha", "NAME=LOWER-UPPER"),
    ("features nofile.csv -o x.csv --feature nope", "no feature 'nope'; there are:"),
    ("features nofile.csv -o x.csv --epoch -1", "epoch must be positive"),
    ("benchmark t.csv --rates 2 --n-splits 2", "from 0 to below 1"),
    ("benchmark t.csv --rates a,b --n-splits 2", "give numbers, such as 0.1,0.3"),
    ("benchmark t.csv --k 1.5 --n-splits 2", "give whole numbers"),
    ("benchmark t.csv --methods nope --n-splits 2", "no method 'nope'; choose from IDFS-MEC"),
    ("benchmark t.csv --patterns nope --n-splits 2", "'nope'; choose from random"),
    ("benchmark t.csv --jobs 0 --n-splits 2", "--jobs 0: give 1 or more"),
    ("benchmark t.csv --seeds 0", "--seeds 0: give at least 1"),
    ("benchmark t.csv --resamples 3", "--resamples 3"),
    ("demo --jobs 0 --out d", "--jobs 0: give 1 or more"),
    ("demo --seed -3 --out d", "--seed -3"),
    ("train t.csv -o m.skops --jobs 0", "--jobs 0: give 1 or more"),
    ("train t.csv -o m.skops --n-splits 1", "--n-splits 1"),
    ("train t.csv -o m.skops --seed -1", "--seed -1: give a whole number"),
    ("train t.csv -o m.pkl", "m.pkl: a model's name ends in .skops"),
    ("predict junk.skops t.csv -o p.txt", "p.txt: predictions are written as CSV"),
    # files
    ("train nowhere.parquet -o m.skops", "nowhere.parquet: there is no such file"),
    ("train one.csv -o m.skops", "one.csv: all samples have the label 'MDD'"),
    ("predict nowhere.skops t.csv -o p.csv", "nowhere.skops: there is no such model file"),
    ("predict junk.skops t.csv -o p.csv", "junk.skops: this is no model file of idfsmec"),
    ("predict junk.skops t.csv -o ranking.csv", "ranking.csv exists; give another name with -o"),
    ("train t.csv", "model.html: exists already; choose another name, or replace it with --force"),
    ("select nowhere.parquet -o r.csv", "nowhere.parquet: there is no such file"),
    ("select junk.parquet -o r.csv", "junk.parquet"),
    ("select one.csv -o r.csv", "one.csv"),
    ("select nolabel.csv -o r.csv", "nolabel.csv"),
    ("select empty.csv -o r.csv", "empty.csv"),
    ("select own -o r.csv", "own"),
    ("select t.csv -o own --force", "own is a folder; give the name of a file with -o"),
    ("features nowhere.csv -o x.csv", "nowhere.csv: there is no such manifest"),
    ("features nolabels.csv -o x.csv", "nolabels.csv, line 1: column 'label' is missing"),
    ("features nofile.csv -o x.csv", "nofile.csv, line 2, column 'path': there is no x.edf"),
    ("features empty.csv -o x.csv", "empty.csv"),
    ("features own -o x.csv", "own/participants.tsv"),
    ("features modma3 -o x.csv", "--data FOLDER"),
    ("features modma3 -o x.csv --data nowhere", "nowhere: there is no such folder"),
    ("features modma4 -o x.csv --data .", "not with 'modma4'"),
    ("features nofile.csv -o x.xlsx", "x.xlsx: a feature table ends in .parquet"),
    ("benchmark t.csv", "table t: 10 folds by subject are not possible"),
    ("benchmark one.csv", "table one: all samples have the label 'MDD'"),
    ("benchmark t.csv ./t.csv", "t.csv is given twice"),
    ("benchmark t.csv --out t.csv", "t.csv is a file; give a folder"),
    (
        "report nowhere",
        "there is no folder nowhere; give the one a benchmark wrote its results into",
    ),
    ("report own", "own holds no results"),
    ("report t.csv", "t.csv"),
    ("reproduce modma3 --data nowhere", "nowhere"),
    ("reproduce modma3 --data own", "own"),
    ("demo --out t.csv", "t.csv is a file; give a folder"),
    # nothing is overwritten
    ("select t.csv", "ranking.csv exists; give another name with -o, or --force"),
    ("features nofile.csv", "table.parquet"),
    ("benchmark t.csv --n-splits 2 --out own", "own/results.csv exists and is not from"),
    ("demo --out demo", "demo/report.html exists; give another folder"),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with good and bad files."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[call for call, _ in CALLS])
def test_one_line_says_what_is_wrong_and_nothing_changes(here, call, said):
    result = runner.invoke(app, call.split(), prog_name="idfsmec")
    assert result.exit_code == 2, result.output
    for part in said.split("|"):  # Click puts the name in one way or another
        assert part in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr
    for name, text in FILES.items():
        assert (here / name).read_text() == text
