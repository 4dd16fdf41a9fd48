"""Nothing is run from a file, nothing leaves the machine, nobody's name gets out.

That the source unpickles and evaluates nothing is ruff's to say (rules S and TID251).
"""

import datetime as dt
import io
import socket
import zipfile

import edfio
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from defusedxml.common import EntitiesForbidden
from typer.testing import CliRunner

from idfsmec.cli import app
from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, accuracy
from idfsmec.evaluation.store import Store
from idfsmec.recordings import read_modma3
from idfsmec.table import FeatureTable
from tests.corpus.case import QUICK, study
from tests.corpus.sound import book_bytes, files_of_format

# --- spreadsheets -----------------------------------------------------------------------

ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
BOMB = f'<!DOCTYPE bomb [<!ENTITY a0 "lol">{ENTITIES}]>'
THEFT = '<!DOCTYPE theft [<!ENTITY a9 SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml"])
@pytest.mark.parametrize("entity", [BOMB, THEFT], ids=["bomb", "theft"])
def test_an_xml_bomb_in_a_spreadsheet_is_refused(tmp_path, part, entity):
    sound = zipfile.ZipFile(io.BytesIO(book_bytes([["subject id", "type"], ["02010002", "MDD"]])))
    path = tmp_path / "subjects_information_EEG_3channels.xlsx"
    (tmp_path / "02010002_still.txt").write_text("1 2 3\n")
    with zipfile.ZipFile(path, "w") as changed:
        for name in sound.namelist():
            text = sound.read(name).decode()
            if name == part:
                start = text.index("?>") + 2 if text.startswith("<?") else 0
                body = text[start:].replace("02010002", "&a9;")
                text = text[:start] + entity + body
            changed.writestr(name, text)
    with pytest.raises(InputError, match=r"3channels\.xlsx: not a readable") as refused:
        read_modma3(tmp_path)
    causes = [error := refused.value]
    while error := error.__cause__ or error.__context__:
        causes.append(error)
    assert any(isinstance(cause, EntitiesForbidden) for cause in causes)


def test_the_ranking_has_no_formula_in_it(tmp_path):
    rng = np.random.default_rng(0)
    cells = ["=1+1", "+1", "-1", "@SUM(A1)", "＝3", "=cmd|' /C calc'!A0"]
    columns = [*(f"{cell}__a" for cell in cells), "@x__+b", "Cz__a"]
    X = pd.DataFrame(rng.normal(size=(20, len(columns))), columns=columns)
    table = FeatureTable(X, ["HC", "MDD"] * 10, [f"s{i}" for i in range(20)])
    table.write(tmp_path / "table.parquet")
    output = tmp_path / "ranking.csv"
    result = CliRunner().invoke(
        app, ["select", str(tmp_path / "table.parquet"), "-o", str(output)]
    )
    assert result.exit_code == 0, result.output
    written = pd.read_csv(output, dtype=str)
    assert set(written["channel"]) == {*(f"'{cell}" for cell in cells), "'@x", "Cz"}
    assert set(written["feature"]) == {"a", "'+b"}


def test_the_files_of_a_benchmark_have_no_formula_in_them_and_read_back_unchanged(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 3)), columns=["=1+1__a", "@x__+b", "NA__a"])
    table = FeatureTable(X, ["HC", "MDD"] * 10, [f"s{i}" for i in range(20)])
    protocol = Protocol(rates=[0.2], n_splits=2, ks=[2])
    out = tmp_path / "out"
    results = accuracy({"\t=t": table}, out, methods=["ANOVA F"], protocol=protocol, n_jobs=1)
    for path in out.glob("*.csv"):
        cells = pd.read_csv(path, dtype=str, keep_default_na=False).to_numpy().ravel()
        assert not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "@"))], path
    assert set(results.ranking["channel"]) == {"=1+1", "@x", "NA"}


# --- no network -------------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch):
    """Let every attempt to reach another machine fail, and be remembered."""
    attempts = []

    def refuse(*arguments, **options):
        attempts.append(arguments)
        raise OSError("the network is off")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket.socket, "sendto", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    return attempts


def test_a_whole_run_needs_no_network(tmp_path, no_network):
    arguments = study(tmp_path, dict(files_of_format("set")), "recording.set")
    table = tmp_path / "table.csv"
    for command in (
        [*arguments, "-o", str(table)],
        ["select", str(table), "-o", str(tmp_path / "ranking.csv")],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    assert no_network == []


# --- nobody's name ----------------------------------------------------------------------

PERSONAL = ("Zhang", "San_", "1980-01-01", "01-JAN-1980", "01.01.80", "P0815", "Dr_Who")
PERSONAL += ("2015-04-16", "16-APR-2015", "16.04.15")


def write_identified(path, seed=0):
    """An EDF file whose header says who was recorded, when and by whom."""
    rng = np.random.default_rng(seed)
    signals = [
        edfio.EdfSignal(
            rng.normal(scale=10, size=250 * 9), 250, label=name, physical_dimension="uV"
        )
        for name in ("Fp1", "Cz", "O1")
    ]
    edfio.Edf(
        signals,
        patient=edfio.Patient(
            code="P0815", sex="M", birthdate=dt.date(1980, 1, 1), name="Zhang_San_"
        ),
        recording=edfio.Recording(
            startdate=dt.date(2015, 4, 16), investigator_technician_code="Dr_Who"
        ),
    ).write(path)


@pytest.fixture
def identified(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for seed in (1, 2, 3):
        write_identified(folder / f"s{seed}.edf", seed)
    assert b"Zhang_San" in (folder / "s1.edf").read_bytes()
    manifest = folder / "study.csv"
    manifest.write_text("path,subject,label\ns1.edf,s1,HC\ns2.edf,s2,MDD\ns3.edf,s3,MDD\n")
    return manifest


def personal_in(folder, said):
    """Look for personal data in all that was written and said."""
    written = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    for path in folder.rglob("*.parquet"):  # compressed: look into it, too
        table = pq.read_table(path)
        written.append(f"{table.schema.metadata} {table.to_pydict()}".encode())
    whole = b"\n".join([*written, said.encode()])
    return [word for word in PERSONAL if word.encode() in whole]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_names_and_birth_dates_do_not_reach_a_table(identified, tmp_path, ending, caplog):
    out = tmp_path / "out"
    command = ["features", str(identified), "-o", str(out / f"table.{ending}"), *QUICK]
    result = CliRunner().invoke(app, ["--debug", *command])
    assert result.exit_code == 0, result.output
    assert personal_in(out, result.stdout + result.stderr + caplog.text) == []


@pytest.mark.slow
def test_names_and_birth_dates_do_not_reach_store_ranking_and_report(identified, tmp_path, caplog):
    for seed, label in enumerate(["HC", "HC", "HC", "MDD", "MDD"], start=4):
        write_identified(identified.with_name(f"s{seed}.edf"), seed)
        with identified.open("a") as manifest:
            manifest.write(f"s{seed}.edf,s{seed},{label}\n")
    out = tmp_path / "out"
    table, results = str(out / "table.parquet"), str(out / "results")
    few = ["--rates", "0.2", "--k", "2", "--folds", "2", "--jobs", "1", "--methods", "ANOVA F"]
    few += ["--resamples", "4"]
    said = ""
    for command in (
        ["features", str(identified), "-o", table, *QUICK],
        ["select", table, "-o", str(out / "ranking.csv")],
        ["benchmark", table, "--out", results, *few],
        ["report", results],
    ):
        result = CliRunner().invoke(app, ["--debug", *command])
        assert result.exit_code == 0, result.output
        said += result.stdout + result.stderr
    written = {path.name for path in out.rglob("*")}
    assert {"table.parquet", "ranking.csv", "store.sqlite", "report.html"} <= written
    assert personal_in(out, said + caplog.text) == []


@pytest.mark.parametrize("place", ["header", "table", "store", "page", "said"])
def test_the_search_for_names_finds_them(tmp_path, place):
    name = "Zhang_San_"
    if place == "header":
        write_identified(tmp_path / "s1.edf")
    elif place == "table":
        pd.DataFrame({"subject": [name]}).to_parquet(tmp_path / "t.parquet")
    elif place == "store":
        with Store(tmp_path) as store:
            store.set_meta("subject", name)
    elif place == "page":
        (tmp_path / "report.html").write_text(f"<p>{name}</p>")
    assert personal_in(tmp_path, name if place == "said" else "")


@pytest.mark.parametrize("damage", ["cut", "shifted", "letters"])
def test_names_do_not_reach_errors_and_parts_that_are_kept(identified, tmp_path, damage, caplog):
    last = identified.with_name("s3.edf")
    whole = last.read_bytes()
    last.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "shifted": whole[:8] + whole[184:],  # names stand where numbers should
            "letters": whole[:236] + b"Zhang_Sa" + whole[244:],
        }[damage]
    )
    out = tmp_path / "out"
    command = ["features", str(identified), "-o", str(out / "table.parquet"), *QUICK]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "s3.edf" in result.stderr
    assert len(list(out.rglob("*.npz"))) == 2
    assert personal_in(out, result.stdout + result.stderr + caplog.text) == []
