"""Feature tables as they come from R, spreadsheets, broken disks and other programs."""

from __future__ import annotations

import gzip
import io
import json
from functools import partial

import numpy as np
import pandas as pd

from .case import ACCEPTED, EITHER, REFUSED, Case
from .sound import flip_bits


def _frame(n=24, columns=("Fp1__a", "Fp1__b", "Cz__a", "Cz__b"), seed=0):
    values = np.random.default_rng(seed).normal(size=(n, len(columns)))
    frame = pd.DataFrame(values, columns=list(columns))
    frame.insert(0, "subject", [f"s{i // 2}" for i in range(n)])
    frame.insert(1, "label", ["HC", "MDD"] * (n // 2))
    return frame


def csv_bytes(frame=None, **options):
    return (_frame() if frame is None else frame).to_csv(index=False, **options).encode()


def parquet_bytes(frame=None):
    file = io.BytesIO()
    (_frame() if frame is None else frame).to_parquet(file)
    return file.getvalue()


def _table(name, content, folder, sidecar=None):
    (folder / name).write_bytes(content)
    if sidecar is not None:
        (folder / f"{name}.info.json").write_text(sidecar)
    return ["select", str(folder / name)]


def _bad(name, content, *said, file="table.csv", ending=REFUSED, **options):
    return Case(f"table: {name}", ending, (file, *said), partial(_table, file, content, **options))


def _fine(name, content, *said, file="table.csv", **options):
    build = partial(_table, file, content, **options)
    return Case(f"table: {name}", ACCEPTED, ("ranking of", *said), build)


def _cell(value, column="Cz__a", row=3):
    frame = _frame().astype({column: object})
    frame.loc[row, column] = value
    return csv_bytes(frame)


def _names(*names):
    return csv_bytes(_frame(columns=("Fp1__a", *names)))


_LINES = csv_bytes().decode().splitlines()

CASES = [
    _bad("empty", b"", "column 'subject'"),
    _bad("only a header", csv_bytes(_frame(0)), "no rows"),
    _bad("no label", csv_bytes(_frame().drop(columns="label")), "column 'label'"),
    _bad("no subject", csv_bytes(_frame().drop(columns="subject")), "column 'subject'"),
    _bad("no features", csv_bytes(_frame()[["subject", "label"]]), "no feature columns"),
    _bad(
        "a column twice", csv_bytes().replace(b"Cz__b", b"Cz__a", 1), "'Cz__a'", "more than once"
    ),
    _bad("a column that is no feature", csv_bytes(_frame().assign(age=30)), "'age'"),
    _bad("a nameless channel", csv_bytes().replace(b"Cz__b", b"__b", 1), "'__b'"),
    _bad("text in numbers", _cell("high"), "'Cz__a'", "'high'", "line 5"),
    _bad("a formula in numbers", _cell("=1+1"), "'Cz__a'", "line 5"),
    _bad("infinity", _cell("inf"), "'Cz__a'", "infinity", "line 5"),
    _bad("a number beyond all", _cell("1e999"), "'Cz__a'", "line 5"),
    _bad("mixed separators", "\n".join([*_LINES[:4], _LINES[4].replace(",", ";")]).encode()),
    _bad("mixed decimals", _cell("1,5"), "'1,5'"),
    _bad("a line too short", "\n".join([*_LINES[:4], "s9,HC,1"]).encode()),
    _bad("a line too long", "\n".join([*_LINES, _LINES[3] + ",7"]).encode()),
    _bad("a quote that never ends", "\n".join([*_LINES, '"s9,HC,1,2,3,4']).encode()),
    _bad("a label is missing", csv_bytes(_frame().replace({"s3": None})), "subject is missing"),
    _bad("one class", csv_bytes(_frame().assign(label="HC")), "one class"),
    _bad(
        "labels are measurements",
        parquet_bytes(_frame().assign(label=np.linspace(0, 1, 24))),
        file="table.parquet",
    ),
    _bad(
        "nothing observed",
        csv_bytes(_frame().assign(**dict.fromkeys(_frame().columns[2:], np.nan))),
    ),
    _bad(
        "each class sees another channel",
        csv_bytes(_frame(columns=("Fp1__a",)).assign(Fp1__a=[np.nan, 1.0] * 12)),
    ),
    _bad(
        "latin-1",
        csv_bytes().replace(b"HC", "gesünd".encode("latin-1")),
    ),
    _bad("UTF-16 cut within a sign", csv_bytes().decode().encode("utf-16")[:-1]),
    _bad("bytes of zero", bytes(500)),
    _bad("random bytes", np.random.default_rng(0).bytes(3000)),
    _bad("a web page", b"<html><body>Not found</body></html>"),
    _bad("called gz but is not", csv_bytes(), file="table.csv.gz"),
    _bad("gz cut", gzip.compress(csv_bytes())[:-200], file="table.csv.gz"),
    _bad("gz with bits flipped", flip_bits(gzip.compress(csv_bytes()), 1), file="table.csv.gz"),
    _bad("damaged companion", csv_bytes(), "metadata", sidecar="{"),
    _bad("companion is a list", csv_bytes(), "metadata", sidecar="[]"),
    _bad("companion of no version", csv_bytes(), "metadata", sidecar='{"info": {}}'),
    _bad("from the future", csv_bytes(), "upgrade", sidecar='{"format_version": 99}'),
    _bad(
        "companion tells other types",
        csv_bytes(),
        ".info.json",
        sidecar=json.dumps({"format_version": 1, "dtypes": {"label": "integer"}}),
    ),
    _bad(
        "companion tells types as numbers",
        csv_bytes(),
        "metadata",
        sidecar=json.dumps({"format_version": 1, "dtypes": {"label": [1]}}),
    ),
    _bad("nested beyond all", csv_bytes(), "metadata", sidecar="[" * 100_000),
    _bad("empty parquet", b"", file="table.parquet"),
    _bad("parquet cut", parquet_bytes()[:-100], file="table.parquet"),
    _bad("parquet cut in front", parquet_bytes()[100:], file="table.parquet"),
    _bad("csv called parquet", csv_bytes(), file="table.parquet"),
    _bad("parquet called csv", parquet_bytes(), file="table.csv"),
    _bad("parquet without rows", parquet_bytes(_frame(0)), "no rows", file="table.parquet"),
    _bad(
        "parquet of lists",
        parquet_bytes(_frame().assign(Cz__a=[[1.0]] * 24)),
        "'Cz__a'",
        file="table.parquet",
    ),
    _bad(
        "parquet of dates",
        parquet_bytes(_frame().assign(Cz__a=pd.Timestamp("2020-01-01"))),
        "'Cz__a'",
        file="table.parquet",
    ),
    *(
        _bad(
            f"parquet with bits flipped, {seed}",
            flip_bits(parquet_bytes(), seed, n=8),
            file="table.parquet",
            ending=EITHER,
        )
        for seed in range(6)
    ),
    _bad("an ending nobody knows", csv_bytes(), "ends in", file="table.xlsx"),
    Case("table: is a folder", REFUSED, ("no .parquet file",), lambda at: ["select", str(at)]),
    # odd, but sound
    _fine("byte order mark", b"\xef\xbb\xbf" + csv_bytes()),
    _fine("semicolons and decimal commas", csv_bytes(sep=";", decimal=",")),
    _fine("CRLF and no last line end", csv_bytes(lineterminator="\r\n").rstrip()),
    _fine("a column of NaN", csv_bytes(_frame().assign(Cz__a=np.nan)), "Cz"),
    _fine("channels with blanks and slashes", _names("F p 1__a", "../../x__a", "a\\b__a")),
    _fine("channels in other scripts", _names("前額__a", "Електрод__a")),
    _fine("channels in HTML", _names("<script>alert(1)</script>__a"), "<script>"),
    _fine("channels as formulas", _names("=1+1__a", "@SUM(A1)__a", "+1__a", "-1__a")),
    _fine("channels in markup", _names("[/red]__a", "[bold]__a"), "[/red]"),
]
