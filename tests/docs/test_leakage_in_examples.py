"""No example teaches leakage: all of them split by participant, and estimators know these.

Shuffled folds of rows put epochs of a participant into training and test, and a table of noise
then has an AUC of 0.77 (24 participants with 20 epochs each).
"""

import ast
import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_score

ROOT = Path(__file__).parents[2]
PARSER = doctest.DocTestParser()
SNIPPET = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)

CROSS_VALIDATION = {
    *("cross_val_score", "cross_val_predict", "cross_validate"),
    *("learning_curve", "validation_curve", "permutation_test_score"),
}
SEARCHES = {"GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"}
OF_ROWS = {
    *("KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold", "LeaveOneOut"),
    *("ShuffleSplit", "StratifiedShuffleSplit", "train_test_split"),
}
#: Estimators whose ``fit`` takes groups.
TAKE_GROUPS = {
    *("IDFSMEC", "IDFSMECCV", "IDFSMECClassifier", "IDFSMECRegressor"),
    *("StabilitySelector", "TunedPipeline", "HarmonizedClassifier"),
}


def code_of(path):
    """Code of a file that readers may copy: of a page, a docstring, a program of the gallery."""
    text = path.read_text("utf-8")
    if path.parent.name == "examples":
        return text
    blocks = SNIPPET.findall(text) if path.suffix == ".md" else docstrings_of(text)
    return "\n".join(
        "".join(example.source for example in PARSER.get_examples(block))
        if ">>> " in block
        else block
        for block in blocks
    )


def docstrings_of(text):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
    return [doc for node in nodes if ">>> " in (doc := ast.get_docstring(node) or "")]


def root_name(node, names):
    """Class or function that a chain of calls begins with."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    name = node.id if isinstance(node, ast.Name) else ""
    return names.get(name, name)


def problems(code):
    """Calls that split rows, or that hide the participants."""
    tree = ast.parse(code)
    names = {
        target.id: root_name(node.value, {})
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        called = root_name(call.func, {}) if isinstance(call.func, ast.Name) else ""
        fits = isinstance(call.func, ast.Attribute) and call.func.attr == "fit"
        fitted = root_name(call.func, names) if fits else ""
        splits = called in CROSS_VALIDATION | SEARCHES
        if called in OF_ROWS:
            yield f"{called} splits rows"
        if splits and ("cv" not in given or isinstance(given["cv"], ast.Constant)):
            yield f"{called} without cv that splits by participant"
        if called in CROSS_VALIDATION and not {"groups", "params"} & set(given):
            yield f"{called} without groups"
        if fitted in SEARCHES and "groups" not in given:
            yield f"{fitted}.fit without groups"
        indexed = (
            call.args and isinstance(call.args[0], ast.Attribute) and call.args[0].attr == "X"
        )
        whole = call.func.attr != "fit" or len(call.args) == 1 if fits else True
        if fitted in TAKE_GROUPS and not (indexed or whole or "groups" in given):
            yield f"{fitted}.fit without groups"


def pages():
    paths = [path for folder in ("docs", "src") for path in (ROOT / folder).rglob("*")]
    written = [path for path in paths if not {"_build", "auto_examples"} & set(path.parts)]
    return [ROOT / "README.md", *(path for path in written if path.suffix in (".md", ".py"))]


def test_every_example_splits_by_participant():
    wrong = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path in pages()
        for problem in problems(code_of(path))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "n_problems"),
    [
        ("cross_val_score(model, X, y)", 2),
        ("cross_val_score(model, X, y, groups=subjects, cv=5)", 1),
        ("cross_validate(model, X, y, cv=folds)", 1),
        ("cross_val_score(model, X, y, groups=subjects, cv=folds)", 0),
        ("folds = StratifiedKFold(5)", 1),
        ("search = GridSearchCV(model, grid, cv=GroupKFold(3))\nsearch.fit(X, y)", 1),
        ("GridSearchCV(model, grid, cv=GroupKFold(3)).fit(X, y, groups=subjects)", 0),
        ("IDFSMEC(lam=2).fit(X, y)", 1),
        ("model = IDFSMECClassifier()\nmodel.fit(X, y)", 1),
        ("IDFSMEC(lam=2).fit(table.X, table.y)", 0),
    ],
)
def test_examples_that_teach_leakage_are_noticed(code, n_problems):
    assert len(list(problems(code))) == n_problems


def test_shuffled_rows_of_noise_have_an_auc_and_participants_have_none():
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(24), 20)
    X = rng.normal(size=(24, 30))[subjects] + rng.normal(size=(480, 30))
    folds = {
        "rows": StratifiedKFold(4, shuffle=True, random_state=0).split(X, subjects % 2),
        "participants": StratifiedGroupKFold(4).split(X, subjects % 2, subjects),
    }
    model = RandomForestClassifier(20, random_state=0)
    auc = {
        name: cross_val_score(model, X, subjects % 2, cv=splits, scoring="roc_auc").mean()
        for name, splits in folds.items()
    }
    assert auc["rows"] > 0.7
    assert auc["participants"] < 0.6
