"""Feature tables on disk, missingness by class, scores, statistics, folds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.golden import api
from tests.golden.cases import case, cases_of, check
from tests.golden.inputs import make_audited, make_table


def table_of(made, rows=None):
    return api.FeatureTable(
        made["X"],
        pd.Series(made["y"]),
        pd.Series(made["subjects"]),
        {"montage": "standard_1005"},
        sites=pd.Series(made["sites"]),
        rows=rows,
    )


@case("tables")
def files(folder):
    made = make_table(6, 2, 3, 2)
    age = pd.DataFrame({"age": made["age"], "recording": made["subjects"]})
    table = table_of(made, rows=age)
    found = {}
    for ending in ("csv", "csv.gz", "parquet"):
        path = table.write(folder / f"files.{ending}")
        read = pd.read_parquet if ending == "parquet" else pd.read_csv
        columns = list(read(path).columns)
        again = api.FeatureTable.read(path)
        found[ending] = {
            "columns": columns,
            "same": bool(again.equals(table)),
            "X": again.X.iloc[:3],
            "y": again.y,
            "subjects": again.subjects,
            "sites": again.sites,
            "rows": list(again.rows.columns),
            "info": dict(again.info),
        }
    return found


@case("tables")
def parts_of_a_table(folder):
    table = table_of(make_table(6, 2, 4, 3))
    fewer = table.select_channels(["F4", "Fp1"])
    fewer = replace(fewer, X=fewer.X[[name for name in fewer.X if name[-1] in "ca"]])
    some = table.take(table.subjects.isin(["s01", "s04"]))
    return {
        "channels": table.channels,
        "features": table.features,
        "observed": table.observed.to_numpy().astype(int),
        "chosen columns": list(fewer.X.columns),
        "chosen subjects": some.subjects,
        "joined": len(api.FeatureTable.concat([some, table.take(table.subjects == "s02")])),
        "frame": list(table.select_channels(["F3"]).take([0, 1]).X.columns),
        "text": repr(table),
    }


@case("tables")
def missingness(folder):
    two, three = make_table(seed=4), make_table(30, 2, 5, 2, n_classes=3, seed=6)
    two["X"].loc[two["y"] == "MDD", ["F4__a", "F4__b", "F4__c", "F4__d", "F4__e"]] = np.nan
    return {
        "two classes": api.missingness_association(table_of(two)),
        "three classes": api.missingness_association(table_of(three)),
    }


@case("tables")
def scores(folder):
    rng = np.random.default_rng(0)
    y, subjects = np.arange(40) // 4 % 2, np.arange(40) // 4
    two = rng.normal(size=(40, 2))
    two[:, 1] += y
    three = rng.normal(size=(40, 3))
    return {
        "two classes": api.score_decisions(two, y, subjects),
        "three classes": api.score_decisions(three, subjects % 3, subjects),
    }


@case("tables")
def statistics(folder):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        rng.uniform(0.5, 0.9, (12, 4)) + [0.1, 0.05, 0.0, 0.0], columns=["A", "B", "C", "D"]
    )
    table.iloc[3, 1] = table.iloc[3, 0]
    selected = rng.random((10, 12)) < 0.4
    return {
        "holm": api.holm([0.01, 0.04, 0.03, 0.5, 0.001]),
        "interval": api.fold_interval(table["A"]),
        "folds": api.compare_folds(table, "A"),
        "stability": api.selection_stability(selected),
    }


@case("tables")
def folds(folder):
    made = make_table()
    given = made["y"], made["subjects"]
    split = {
        "by subject": api.make_folds(*given, n_splits=4, random_state=3),
        "by sample": api.make_folds(*given, "sample", n_splits=4, random_state=3),
        "by site": api.make_folds(*given, "site", sites=made["sites"]),
    }
    return {
        name: [test if name == "by sample" else np.unique(given[1][test]) for _, test in pairs]
        for name, pairs in split.items()
    }


@case("tables")
def acquisition(folder):
    made = make_audited(6)
    table = api.FeatureTable(made["X"], made["y"], made["subjects"], made["info"])
    found = api.recording_variables(table)
    return {
        "subjects": [str(subject) for subject, _ in found.index],
        "variables": found,
    }


@case("tables")
def published(folder):
    return {
        name: api.published("accuracy", name)["IDFS-MEC"]
        for name in ("modma3", "modma128", "pred-d003")
    }


@pytest.mark.parametrize(("file", "name"), cases_of(__name__))
def test_tables_do_as_recorded(file, name, folder):
    check(file, name, folder)
