import numpy as np
import pandas as pd

from idfsmec.table import FeatureTable


def table(channel="F3", missing=True):
    X = pd.DataFrame(np.arange(8.0).reshape(4, 2), columns=[f"{channel}__a", "Cz__a"])
    if missing:
        X.iloc[0, 0] = np.nan
    labels, subjects = pd.Series(["HC", "HC", "MDD", "MDD"]), pd.Series(["s1", "s1", "s2", "s2"])
    return FeatureTable(X, labels, subjects, {})


def test_a_notebook_shows_counts_and_a_map_of_what_is_missing():
    shown = table()._repr_html_()
    assert "HC 2, MDD 2" in shown
    assert "12.5%" in shown
    assert shown.count("<rect") == 1
    assert "s1, F3: 50% missing" in shown


def test_a_complete_table_has_no_map():
    assert "<svg" not in table(missing=False)._repr_html_()


def test_names_stay_text():
    shown = table("<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
