"""What all commands have in common: exit codes, one line per error, help, Tab completion."""

import errno
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from idfsmec import cli
from idfsmec.cli import app, options
from idfsmec.errors import InputError
from idfsmec.missing import PATTERNS
from idfsmec.recordings import DATA_SETS
from tests.evaluation.cohorts import make_cohort

runner = CliRunner()
COMMANDS = {info.name: info.callback for info in app.registered_commands}
SOURCE_TREE = Path(__file__).parents[2] / "src"


def run(*words):
    return runner.invoke(app, [str(word) for word in words], prog_name="idfsmec")


@pytest.fixture
def run_and_raise(monkeypatch, tmp_path):
    """Run a command that fails with an error when it reads its table."""
    (tmp_path / "table.csv").touch()

    def do(error, *words):
        def fail(path):
            raise error

        monkeypatch.setattr("idfsmec.table.FeatureTable.read", fail)
        return run("select", tmp_path / "table.csv", "-o", tmp_path / "r.csv", *words)

    return do


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("t.csv: no column\n'label'; add one"), 2, "t.csv: no column 'label'; add one"),
        (FileNotFoundError(2, "No such file", "x.csv"), 2, "x.csv: No such file"),
        (PermissionError(13, "Permission denied", "t.csv"), 2, "t.csv: Permission denied"),
        (RuntimeError("solver broke"), 1, "solver broke"),
        (KeyboardInterrupt("stopped; all is kept"), 130, "stopped; all is kept"),
    ],
)
def test_an_error_ends_in_one_line_and_its_exit_code(run_and_raise, error, code, line):
    result = run_and_raise(error)
    assert result.exit_code == code
    assert result.stderr.splitlines()[-1] == f"error: {line}"
    assert "Traceback" not in result.stderr


def test_used_up_memory_is_said_without_using_more(run_and_raise, capfd):
    assert run_and_raise(MemoryError()).exit_code == 1
    assert capfd.readouterr().err.startswith("error: out of memory; give fewer --jobs")


def test_too_many_open_files_are_said_also_where_a_library_stumbles_over_them(run_and_raise):
    stumbled = UnboundLocalError("cannot access local variable 'child_r'")
    stumbled.__context__ = OSError(errno.EMFILE, "Too many open files")
    result = run_and_raise(stumbled)
    assert result.exit_code == 1
    assert "error: too many open files; give fewer --jobs" in result.stderr


def test_debug_and_quiet_may_stand_anywhere_and_hold_for_one_call(tmp_path, capfd):
    missing = tmp_path / "nowhere.csv"
    for words in (["--debug", "select", missing], ["select", missing, "--debug", "-q"]):
        result = run(*words)
        assert result.exit_code == 2
        assert "Traceback" in result.stderr + capfd.readouterr().err
    assert "Traceback" not in run("select", missing).stderr + capfd.readouterr().err
    assert "No such option" not in run("select", "--", "--debug").stderr


def test_verbose_logs_versions_and_tasks_with_times_for_one_call(tmp_path):
    table = make_cohort(n_channels=4).write(tmp_path / "table.parquet")
    options = ["-o", tmp_path / "ranking.csv", "--force", "--resamples", 4, "--jobs", 1]
    log = run("select", table, *options, "-v").stderr
    assert re.search(r"^\d{4}-\d\d-\d\d [\d:,]+ INFO tasks in this process, numpy \d", log, re.M)
    assert re.search(r" INFO task 1 ended$", log, re.M)
    assert "INFO" not in run("select", table, *options).stderr


def test_a_program_that_calls_us_handles_errors_itself():
    from typer.main import get_command

    with pytest.raises(Exception, match="No such command"):
        get_command(app).main(["nonsense"], standalone_mode=False)


def test_version_is_printed_and_no_arguments_show_the_help():
    assert run("--version").output.startswith("idfsmec ")
    assert "Commands" in run().output


# --- bad calls -------------------------------------------------------------------------

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
    "junk.summary": "hello",
    "settings.toml": "epochs = 4",
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
    ("predict", "Missing argument 'MODEL'. See `idfsmec predict --help`."),
    ("select t.csv --k abc", "Invalid value for '--k'"),
    ("select t.csv --tun", "No such option|--tun"),
    ("features", "Give a manifest, a BIDS folder or a data set. See `idfsmec features --help`."),
    ("features nofile.csv --on-error perhaps", "'--on-error'"),
    ("reproduce modma3", "Missing option '--data'"),
    ("reproduce modma5 --data .", "'modma3', 'modma128', 'pred-d003'"),
    # values
    ("select t.csv -o r.parquet", "r.parquet: give a name that ends in .csv"),
    ("select t.csv -o r.csv --k 0", "--k must be at least 1"),
    ("select t.csv -o r.csv --resamples 7", "--resamples 7: give an even number"),
    (
        "select t.csv -o r.csv --tune --harmonize all",
        "idfsmec benchmark and train learn it inside their folds",
    ),
    ("select junk.summary -o r.csv --tune", "--tune needs the rows of participants"),
    ("select junk.summary -o r.csv --resamples 10", "--resamples needs the rows of participants"),
    ("features nofile.csv -o x.csv --jobs 0", "--jobs 0: give 1 or more, or -1"),
    ("features nofile.csv -o x.csv --features nope", "no feature 'nope'; there are:"),
    (
        "features nofile.csv -o x.csv --epoch -1",
        "epoch = -1.0 is not the length of an epoch: seconds above 0",
    ),
    ("features nofile.csv --config settings.toml", "settings.toml: there is no setting 'epochs'"),
    ("features --write-config settings.toml", "settings.toml: exists already|--force"),
    ("benchmark t.csv --rates 2 --folds 2", "from 0 to below 1"),
    ("benchmark t.csv --rates a,b --folds 2", "give a list of numbers"),
    ("benchmark t.csv --methods nope --folds 2", "no method 'nope'; choose from IDFS-MEC"),
    ("benchmark t.csv --imputer nope --folds 2", "no imputer 'nope'|hoose from mean"),
    ("benchmark t.csv --patterns nope --folds 2", "'nope'; choose from random"),
    ("benchmark t.csv --experiment nope", "--experiment nope: choose from accuracy"),
    ("benchmark t.csv --repeats 0", "--repeats 0: give at least 1"),
    ("benchmark t.csv --resamples 7", "--resamples 7: give an even number"),
    ("benchmark t.csv --folds person", "--folds person: give a number of at least 2, or site"),
    ("train t.csv -o m.skops --method nope", "there is no method 'nope'; choose from IDFS-MEC"),
    ("train t.csv -o m.pkl", "m.pkl: give a name that ends in .skops"),
    # files
    ("select nowhere.parquet -o r.csv", "nowhere.parquet: there is no such file"),
    ("select s3://bucket/t.parquet -o r.csv", "is an address|pyarrow.dataset"),
    ("train gs://bucket/t.parquet -o m.skops", "is an address|pyarrow.dataset"),
    ("select junk.parquet -o r.csv", "junk.parquet"),
    ("select one.csv -o r.csv", "one.csv"),
    ("select nolabel.csv -o r.csv", "nolabel.csv"),
    ("select empty.csv -o r.csv", "empty.csv"),
    ("select own -o r.csv", "own"),
    ("select t.csv -o own --force", "own is a folder; give the name of a file with -o"),
    ("select junk.summary -o r.csv", "junk.summary: not a readable summary"),
    ("summarise junk.summary", "junk.summary: not a readable summary"),
    ("train one.csv -o m.skops", "one.csv: all samples have the label 'MDD'"),
    ("predict junk.skops t.csv -o p.csv", "junk.skops: this is no model file of idfsmec"),
    ("features nolabels.csv -o x.csv", "nolabels.csv, line 1: column 'label' is missing"),
    ("features nofile.csv -o x.csv", "nofile.csv, line 2, column 'path': there is no x.edf"),
    ("features own -o x.csv", "own/participants.tsv"),
    ("features modma3 -o x.csv", "--data FOLDER"),
    ("features modma4 -o x.csv --data .", "no data set of that name (modma3, modma128"),
    ("features nofile.csv -o x.csv --labels bdi13", "--labels bdi13: has no meaning for a man"),
    ("features nofile.csv -o x.xlsx", "x.xlsx: a feature table ends in .parquet"),
    (
        "benchmark t.csv --folds 3",
        "table t: 3 folds by participant are not possible: the smallest class has 2 participants; "
        "give 2",
    ),
    ("benchmark t.csv --folds site", "table t: folds by site need sites"),
    ("benchmark t.csv ./t.csv", "t.csv is given twice"),
    ("audit t.csv --also bdi", "t.csv: |bdi"),
    ("report nowhere", "there is no folder nowhere; give the one a benchmark wrote its results"),
    ("report own", "own holds no results"),
    ("reproduce modma3 --data nowhere", "nowhere"),
    ("demo --out t.csv", "t.csv is a file; give a folder"),
    # nothing is overwritten
    ("select t.csv", "ranking.csv: exists already|--force"),
    ("features nofile.csv", "table.parquet: exists already|--force"),
    ("train t.csv", "model.html: exists already|--force"),
    ("predict junk.skops t.csv -o ranking.csv", "ranking.csv: exists already|--force"),
    ("benchmark t.csv --folds 2 --out own", "own/results.csv exists and is not from"),
    ("demo --out demo", "demo/report.html: exists already|--force"),
]


#: Output = input, by its name, another spelling of it, a symbolic or a hard link.
REPLACED = [
    "select t.csv -o t.csv",
    "select t.csv -o own/../t.csv",
    "select t.csv -o soft.csv",
    "select t.csv nolabel.csv -o hard.csv",
    "predict junk.skops t.csv -o soft.csv",
    "predict t.csv nolabel.csv -o t.csv",
    "features t.csv -o ./t.csv",
    "features t.csv --config settings.toml --write-config settings.toml",
    "train t.csv -o soft.skops",
    "benchmark own/results.csv --out own",
    "audit own/results.csv --out own",
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with good and bad files."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("call", "line"), CALLS, ids=[call for call, _ in CALLS])
def test_one_line_says_what_is_wrong_and_nothing_changes(here, call, line):
    result = run(*call.split())
    assert result.exit_code == 2, result.output
    for part in line.split("|"):
        assert part in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    for name, text in FILES.items():
        assert (here / name).read_text() == text


@pytest.mark.parametrize("call", REPLACED)
def test_an_input_is_not_replaced_even_with_force(here, call):
    for name in ("soft.csv", "soft.skops"):
        (here / name).symlink_to("t.csv")
    (here / "hard.csv").hardlink_to("t.csv")
    (here / "settings.toml").write_text("epoch = 4")
    result = run(*call.split(), "--force")
    assert result.exit_code == 2
    assert "is an input, and would be replaced; give another name" in result.stderr
    assert (here / "t.csv").read_text() == FILES["t.csv"]
    assert (here / "settings.toml").read_text() == "epoch = 4"


@pytest.mark.parametrize(
    "call",
    [
        "demo --out {}",
        "benchmark t.csv --out {}",
        "select t.csv -o {}.csv",
        "train t.csv -o {}.skops",
        "predict m.skops t.csv -o {}.csv",
        "reproduce modma3 --data . --out {}",
        "features nofile.csv -o {}.csv",
        "summarise t.csv -o {}.summary",
    ],
)
def test_what_could_not_be_written_is_refused_before_anything_is_done(here, call):
    (here / "m.skops").touch()
    result = run(*call.format("x" * 300).split())
    assert result.exit_code == 2
    assert "cannot be written there (File name too long)" in " ".join(result.stderr.split())


# --- help and completion ------------------------------------------------------------------


def test_the_commands_are_those_of_the_contract():
    contract = (
        "demo plan features select summarise train predict validate audit benchmark multiverse "
        "report reproduce"
    )
    assert cli.__all__ == ["app", *contract.split()]
    assert set(COMMANDS) == set(contract.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_describes_itself_and_is_a_function_of_the_same_name_and_options(name):
    text = COMMANDS[name].__doc__
    assert len(text.splitlines()[0]) > 20
    assert text.count(f"    idfsmec {name}") >= 2
    shown = runner.invoke(app, [name, "--help"], terminal_width=200).output
    assert f"idfsmec {name}" in shown.split("For example:")[1]
    parameters = inspect.signature(COMMANDS[name]).parameters
    assert list(parameters) == list(inspect.signature(getattr(cli, name)).parameters)
    for parameter in parameters.values():
        (described,) = parameter.annotation.__metadata__
        assert described.help, f"{name}: {parameter.name} says nothing"
        assert "[" not in described.help, "what is in brackets is taken for a style and not shown"


def tab(*words):
    """What a shell is given for the last word."""
    result = runner.invoke(
        app,
        [],
        prog_name="idfsmec",
        env={
            "_IDFSMEC_COMPLETE": "complete_bash",
            "COMP_WORDS": "idfsmec " + " ".join(words),
            "COMP_CWORD": str(len(words)),
        },
    )
    assert result.exit_code == 0, result.output
    return [line for line in result.output.split("\n") if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("be", "benchmark"),
        ("benchmark t.csv --meth", "--methods"),
        ("benchmark t.csv --methods R", "ReliefF RRCT RFS"),
        ("benchmark t.csv --methods mRMR,CM", "mRMR,CMIM"),
        ("benchmark t.csv --patterns random,re", "random,recording random,region"),
        ("benchmark t.csv --experiment ab", "ablation"),
        ("benchmark t.csv --imputer fa", "factors"),
        ("train t.csv --method mR", "mRMR"),
        ("train t.csv --folds s", "site"),
        ("reproduce modma", "modma3 modma128"),
        ("features pred", "pred-d003"),
        ("features pred-d003 --labels bdi-", "bdi-above-13 bdi-extremes"),
        ("features m.csv --features spec", "spectral_entropy"),
        ("features pred-d003 --condition eyes-o", "eyes-open"),
        ("features study", ""),
    ],
)
def test_the_tab_key_offers(words, offered):
    assert tab(*words.split()) == offered.split()


def test_names_that_the_tab_key_has_without_an_import_are_those_of_the_registries():
    assert options.PATTERNS == PATTERNS
    assert tuple(DATA_SETS) == options.DATA_SETS


def test_completion_is_installed_where_the_shell_looks(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert run("--install-completion", "bash").exit_code == 0
    assert "idfsmec.sh" in (tmp_path / ".bashrc").read_text()
    script = next(tmp_path.rglob("idfsmec.sh")).read_text()
    assert "_IDFSMEC_COMPLETE=complete_bash" in script


# One process that is asked everything that starts at once, in turn.
LOADED = """
import sys
from typer.testing import CliRunner
from idfsmec.cli import app, options
for words in ("--version", "--help", "select --help", "benchmark --help"):
    assert CliRunner().invoke(app, words.split()).exit_code == 0
for words in ("be", "benchmark t.csv --methods m", "benchmark t.csv --imputer m",
              "benchmark t.csv --patterns r", "reproduce mod", "features mod",
              "features pred-d003 --labels b", "features m.csv --features s"):
    asked = {"_IDFSMEC_COMPLETE": "complete_bash", "COMP_WORDS": f"idfsmec {words}",
             "COMP_CWORD": str(len(words.split()))}
    assert CliRunner().invoke(app, [], prog_name="idfsmec", env=asked).output.strip(), words
heavy = {"sklearn", "scipy", "pandas", "pyarrow", "matplotlib", "joblib", "mne"}
print(sorted({name.partition(".")[0] for name in sys.modules} & heavy))
"""


def test_version_help_and_the_tab_key_load_nothing_that_computes():
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=os.environ | {"PYTHONPATH": str(SOURCE_TREE)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[]\n", done.stderr
