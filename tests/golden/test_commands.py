"""Every command, run in this process: exit codes, files, columns, and the numbers that matter."""

import functools
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from tests.golden import api
from tests.golden.cases import case, cases_of, check
from tests.golden.inputs import make_audited, make_table, write_modma3, write_study

#: What tuning and classifiers give is as exact as an SVM is solved, or one sample of a fold.
LOOSE = {"rtol": 1e-3, "atol": 1e-3}


def table(made, path):
    sites = pd.Series(made["sites"]) if "sites" in made else None
    whole = api.FeatureTable(
        made["X"], made["y"], made["subjects"], made.get("info", {}), sites=sites
    )
    return whole.write(path)


def run(*words):
    """Exit code 0, or an error with what was printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code, said, errors = api.run(*words)
    assert code == 0, (words, said, errors)
    return said


def written(folder):
    """Files for people; how results are stored is not part of the promise."""
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return [name for name in files if not name.startswith("store.")]


def headings(page):
    found = re.findall(r"<h[12][^>]*>(?:<a[^>]*>)?([^<]*)", page.read_text("utf-8"))
    return [text.strip() for text in found]


@functools.cache
def cohort(folder):
    return table(make_table(effect=3.0), folder / "cohort.parquet")


@functools.cache
def extracted(folder):
    study = write_study(folder / "study")
    run("features", study, "-o", folder / "features.parquet", "--epoch", 5)
    return api.FeatureTable.read(folder / "features.parquet")


@case("commands", rtol=1e-5, atol=1e-8)  # files hold 16 bits of a range
def features(folder):
    found = extracted(folder)
    return {
        "columns": list(found.X.columns),
        "y": found.y,
        "subjects": found.subjects,
        "sites": found.sites,
        "rows": list(found.rows.columns),
        "missing": found.observed.shape[0] - found.observed.sum(),
        "values": found.X.iloc[::7, ::9],
        "recordings": [
            {"subject": one["subject"], "rows": one["rows"]} for one in found.info["recordings"]
        ],
        "reasons": sorted(set(pd.read_csv(_reasons(folder), sep="\t")["reason"])),
    }


def _reasons(folder):
    return folder / api.path_of("features.parquet.reasons.tsv.gz")


@case("commands", rtol=1e-5, atol=1e-8)
def features_with_options(folder):
    extracted(folder)
    out, config = folder / "options.csv", folder / "settings.toml"
    settings = "features = ['de', 'ap']\nreference = 'average'\noverlap = 5\n"
    config.write_text(f"{settings}[bands]\nalpha = [8, 13]\nslow = [1, 8]\n")
    study = folder / "study" / "study.csv"
    run("features", study, "-o", out, "--config", config)
    found = api.FeatureTable.read(out)
    columns = list(pd.read_csv(out, nrows=0).columns)
    return {"columns": columns, "values": found.X.iloc[::5, ::7], "n": len(found)}


@functools.cache
def select(folder, *words):
    """Rank a table, which has groups: its subjects."""
    out = folder / f"ranking{'-'.join(map(str, words))}.csv"
    run("select", cohort(folder), "-o", out, "--k", 6, *words)
    return api.read_csv(out)


def select_in_python(folder, **settings):
    """What the command has no option for."""
    source = api.FeatureTable.read(cohort(folder))
    selector = api.IDFSMEC(source.column_channels, n_features_to_select=6, **settings)
    return api.ranking_frame(selector.fit(source.X, source.y, groups=source.subjects))


def ranked(frame, *more):
    best = frame["channel"] + "__" + frame["feature"]
    numbers = {name: frame[name].head(20) for name in ("score", "channel_weight", *more)}
    return {"ranking": best.head(20), "n_selected": int(frame["selected"].sum()), **numbers}


@case("commands")
def select_columns(folder):
    first = select(folder)
    halves = select(folder, "--resamples", 10)
    names = first["channel"] + "__" + first["feature"]
    effects = first.set_index(names).sort_index()
    return {
        "columns": list(first.columns),
        "columns with halves": list(halves.columns),
        "effects": effects[[c for c in effects if c.startswith(("n_", "dir", "hedges", "auc"))]],
    }


@case("grouped", **LOOSE)
def select_ranking(folder):
    return {
        "default": ranked(select(folder)),
        "halves": ranked(select(folder, "--resamples", 10), "frequency", "stable"),
        "tuned": ranked(select(folder, "--tune")),
        "other": ranked(select_in_python(folder, lam=0.1, gamma=4)),
        "harmonized": ranked(select(folder, "--harmonize")),
    }


@functools.cache
def audited(folder, device):
    name = f"audited-{device:g}"
    source = table(make_audited(device=device), folder / f"{name}.parquet")
    out = folder / name
    run("audit", source, "--out", out, "--n-splits", 4, "--jobs", 1)
    return out, api.read_audit(out, name)


@case("commands", **LOOSE)
def audit(folder):
    found = {}
    for name, device in {"confounded": 1.0, "by chance": 0.0}.items():
        out, made = audited(folder, device)
        found[name] = {
            "level": made["level"],
            "variables": made["variables"],
            "coincide": made["coincide"],
            "missed": made["missed"],
            "repeated": made["leaks"]["repeated"]["n_repeated"],
        }
    return {**found, "files": [name for name in written(out) if name.endswith(("html", "md"))]}


@case("grouped", **LOOSE)
def audit_of_the_eeg(folder):
    found = {}
    for device in (1.0, 0.0):
        made = audited(folder, device)[1]
        leaks = {key: made["leaks"][key] for key in ("subject", "by_sample", "before", "shuffled")}
        found[f"device {device:g}"] = {
            "eeg": made["eeg"],
            "carried": made["carried"],
            "regressed": {k: v for k, v in made["regressed"].items() if k != "variables"},
            "leaks": leaks,
        }
    return found


@functools.cache
def benchmarked(folder):
    out = folder / "benchmark"
    words = ("--methods", "IDFS-MEC,mRMR,ANOVA F", "--rates", "0.2,0.5", "--k", "4,8")
    few = ("--n-splits", 3, "--jobs", 1, "--quiet", "--resamples", 10, "--no-audit")
    said = run("benchmark", cohort(folder), "--out", out, "--repeats", 1, *words, *few)
    return out, said


def scores_of(results, methods):
    chosen = results.chosen("accuracy")
    rows = chosen[chosen["method"].isin(methods)].sort_values(["method", "rate", "fold"])
    names = ["method", "rate", "fold", "k", "balanced_accuracy", "roc_auc", "subject_roc_auc"]
    return rows[names].reset_index(drop=True)


def first_features(results, methods):
    rows = results.selections[results.selections["method"].isin(methods)]
    rows = rows.sort_values(["method", "rate", "fold"])
    return [list(ranking)[:8] for ranking in rows["ranking"]]


@case("commands", **LOOSE)
def benchmark(folder):
    out, said = benchmarked(folder)
    results = api.Results.read(out)
    methods = ["ANOVA F", "mRMR"]
    assert "IDFS-MEC" in said
    return {
        "files": [n for n in written(out) if "figures" not in n],
        "columns": list(api.read_csv(out / "results.csv").columns),
        "parquet": list(pd.read_parquet(out / "results.parquet").columns),
        "ranking columns": list(api.read_csv(out / "ranking.csv").columns),
        "scores": scores_of(results, methods),
        "features": first_features(results, methods),
        "failures": len(results.failures),
        "sizes": sorted(
            set(zip(results.scores["n_train"], results.scores["n_test"], strict=True))
        ),
    }


@case("grouped", **LOOSE)
def benchmark_of_idfsmec(folder):
    results = api.Results.read(benchmarked(folder)[0])
    halves = next(iter(results.resampling.values()))
    return {
        "scores": scores_of(results, ["IDFS-MEC"]),
        "features": first_features(results, ["IDFS-MEC"]),
        "ranking": list(results.ranking["channel"] + "__" + results.ranking["feature"])[:20],
        "frequency": [halves["frequency"][name] for name in sorted(halves["frequency"])],
        "stability": halves["stability"]["value"],
        "settings": sorted(set(results.chosen("accuracy")["params"])),
    }


@case("commands", **LOOSE)
def benchmark_with_options(folder):
    out = folder / "options"
    words = ("--methods", "ANOVA F,ReliefF,all features,CD-LSR", "--rates", 0.3, "--k", 5)
    few = ("--n-splits", 3, "--jobs", 1, "--quiet", "--resamples", 0, "--no-audit")
    more = ("--filler", "mean", "--folds", "site", "--harmonize", "--patterns", "recording")
    run("benchmark", cohort(folder), "--out", out, "--repeats", 1, *words, *few, *more)
    results = api.Results.read(out)
    return {
        "scores": scores_of(results, ["ANOVA F", "ReliefF", "all features"]),
        "features": first_features(results, ["ANOVA F", "ReliefF"]),
    }


@case("commands", **LOOSE)
def benchmark_as_in_the_paper(folder):
    protocol = {"rates": [0.3], "ks": [5], "n_splits": 3, "seeds": [2]}
    protocol |= {"folds": "sample", "missing_in": "selection", "tuning": "oracle"}
    results = api.accuracy(
        {"cohort": api.FeatureTable.read(cohort(folder))},
        folder / "paper",
        methods=["ANOVA F", "RRCT"],
        classifier="ridge",
        protocol=protocol,
        n_jobs=1,
    )
    return {
        "scores": scores_of(results, ["ANOVA F", "RRCT"]),
        "features": first_features(results, ["ANOVA F", "RRCT"]),
    }


@case("commands")
def report(folder):
    out = benchmarked(folder)[0]
    if not (out / "report.html").exists():
        run("report", out)
    page = (out / "report.html").read_text("utf-8")
    return {
        "headings": headings(out / "report.html"),
        "figures": sorted(re.findall(r'<figure class="figure" id="([^"]+)"', page)),
        "files": sorted(path.name for path in (out / "figures").iterdir()),
        "self-contained": not re.search(r'(src|href)="https?://[^"]*\.(js|css|png)', page),
    }


@functools.cache
def trained(folder):
    model = folder / "model.skops"
    run("train", cohort(folder), "-o", model, "--n-splits", 3, "--seeds", 1)
    new = table(make_table(6, seed=11), folder / "new.csv")
    pages = folder / "pages"
    run("predict", model, new, "-o", folder / "predicted.csv", "--pages", pages)
    frame = api.of_predicted(api.read_csv(folder / "predicted.csv", "predictions"))
    return model, frame, pages


@case("commands")
def train_and_predict(folder):
    model, frame, pages = trained(folder)
    return {
        "columns": list(frame.columns),
        "subjects": frame.iloc[:, 0],
        "epochs": frame["epochs"],
        "channels present": frame["channels present"],
        "pages": written(pages),
        "beside the model": [model.with_suffix(s).exists() for s in (".md", ".html")],
        "classes": api.load_model(model).classes,
        "channels": api.load_model(model).channels,
    }


@case("grouped", **LOOSE)
def predictions(folder):
    model, frame, _ = trained(folder)
    measured = api.load_model(model).performance["metrics"]
    return {
        "predicted": frame["predicted"],
        "probability": frame["probability"],
        "low": frame["low"],
        "high": frame["high"],
        "distance": frame["distance"],
        "warned": frame["warnings"].notna(),
        "loudest": frame["loudest channels"].str.split().str[0],
        "roc_auc": measured["roc_auc"]["mean"],
        "balanced_accuracy": measured["balanced_accuracy"]["mean"],
    }


@case("commands", **LOOSE)
def train_another_method(folder):
    model = folder / "ridge.skops"
    method = api.TunedMethod("ANOVA F", classifier="ridge", imputer="mean")
    source = api.FeatureTable.read(cohort(folder))
    made = api.train_model(source, method, harmonize=True, n_splits=2, n_repeats=1)
    api.save_model(made, model)
    new = table(make_table(6, seed=11), folder / "again.csv")
    run("predict", model, new, "-o", folder / "ridge.csv")
    frame = api.of_predicted(api.read_csv(folder / "ridge.csv", "predictions"))
    measured = api.load_model(model).performance["metrics"]
    return {
        "predicted": frame["predicted"],
        "probability": frame["probability"],
        "roc_auc": measured["roc_auc"]["mean"],
    }


@case("commands", rtol=1e-3, atol=1e-3)
def predict_recordings(folder):
    """A model of features of recordings is asked about recordings."""
    whole = extracted(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = api.fit_model(whole)
    path = api.save_model(model, folder / "recordings.skops")
    assert (folder / "recordings.skops").exists(), path
    study = folder / "study"
    out = folder / "asked.csv"
    run("predict", folder / "recordings.skops", study / "s0.edf", study / "s1.vhdr", "-o", out)
    asked = api.of_predicted(api.read_csv(out, "predictions"))
    frame = api.of_predicted(api.predict_subjects(model, whole))
    same = np.allclose(asked["probability"], frame["probability"].head(2), atol=1e-6)
    return {
        "predicted": asked["predicted"],
        "epochs": asked["epochs"],
        "as from the table": bool(same),
    }


PAPER = {"rates": [0.3], "n_splits": 2, "ks": [10], "svm_costs": [0.1], "n_inner_splits": 2}


@functools.cache
def reproduced(folder):
    data = write_modma3(folder / "modma")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return api.reproduce("modma3", data, folder / "reproduced", PAPER, ["IDFS-MEC", "mRMR"])


@case("commands")
def reproduce(folder):
    results = reproduced(folder)
    out = folder / "reproduced"
    tables = {name: api.read_csv(out / name) for name in ("fig2.csv", "fig3.csv", "table1.csv")}
    cost = api.read_csv(out / "table2.csv")
    whole = api.FeatureTable.read(out / "table.parquet")
    return {
        "files": [name for name in written(out) if name.endswith((".csv", ".txt"))],
        "columns": {name: list(frame.columns) for name, frame in tables.items()},
        "methods": {
            name: list(frame["method"]) for name, frame in tables.items() if "method" in frame
        },
        "published": tables["fig2.csv"]["published mean"],
        "cost": cost.drop(columns="seconds"),
        "experiments": sorted(set(results.scores["experiment"])),
        "table": [whole.X.shape[0], whole.X.shape[1], whole.subjects.nunique()],
        "mRMR": tables["fig2.csv"].set_index("method")["mean"]["mRMR"],
    }


@case("grouped", **LOOSE)
def reproduce_idfsmec(folder):
    reproduced(folder)
    out = folder / "reproduced"
    return {
        "fig2": api.read_csv(out / "fig2.csv").set_index("method")["mean"].to_dict(),
        "table1": api.read_csv(out / "table1.csv").set_index("method")["mean"].to_dict(),
        "fig3": api.read_csv(out / "fig3.csv")[["lam", "gamma", "accuracy"]],
    }


@functools.cache
def demonstrated(folder):
    from_before = api.make_small_demo(
        8, 20.0, (0.3,), 2, (5,), ("IDFS-MEC", "ANOVA F"), n_channels=19, n_resamples=10
    )
    try:
        run("demo", "--quick", "--out", folder / "demo")
    finally:
        from_before()
    return folder / "demo"


@case("commands", **LOOSE)
def demo(folder):
    out = demonstrated(folder)
    results = api.Results.read(out)
    whole = api.FeatureTable.read(out / "cohort.parquet")
    return {
        "files": [name for name in written(out) if "figures" not in name],
        "figures": sorted(path.name for path in (out / "figures").glob("*.svg")),
        "shape": whole.X.shape,
        "missing": int((~whole.observed.to_numpy()).sum()),
        "verdict": [one.level for one in api.audits_of(results).values()],
        "scores": scores_of(results, ["ANOVA F"]),
        "features": first_features(results, ["ANOVA F"]),
    }


@case("commands")
def refusals(folder):
    """Bad usage and bad input end with exit code 2 and name what is wrong."""
    nowhere, source = folder / "nowhere.parquet", cohort(folder)
    kept = folder / "kept.csv"
    kept.write_text("mine")
    (folder / "empty").mkdir()
    codes = {
        "no table": api.run("select", nowhere, "-o", folder / "x.csv"),
        "no features": api.run("select", source, "-o", folder / "x.csv", "--k", 0),
        "a file is there": api.run("select", source, "-o", kept),
        "no method": api.run("benchmark", source, "--methods", "none", "--out", folder / "x"),
        "no results": api.run("report", folder / "empty"),
        "no model": api.run("predict", nowhere, source, "-o", folder / "x.csv"),
        "no recordings": api.run("features", nowhere, "-o", folder / "x.parquet"),
        "one fold": api.run("audit", source, "--n-splits", 1, "--out", folder / "x"),
        "no data": api.run("reproduce", "modma3", "--data", folder / "nowhere"),
    }
    assert "nowhere.parquet" in " ".join(codes["no table"][2].split())
    assert "--force" in codes["a file is there"][2]
    return {name: code for name, (code, _, _) in codes.items()}


@pytest.mark.usefixtures("empty_figure_files")
@pytest.mark.parametrize(("file", "name"), cases_of(__name__))
def test_commands_do_as_recorded(file, name, folder):
    check(file, name, folder)
