"""The commands select and summarise: rankings of tables, of folders, and of sites together."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from idfsmec import IDFSMEC, StabilitySelector, cli
from idfsmec.cli import app
from idfsmec.selection.effects import adjusted_effects
from idfsmec.table import FeatureTable
from tests.conftest import make_channels
from tests.evaluation.cohorts import make_hospitals


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], terminal_width=200)
    done.text = " ".join((done.stdout + done.stderr).split())
    return done


def write_table(path, missing_channel=False, labels_by_subject=True):
    X, y, channels = make_channels()
    X = X.copy()
    if missing_channel:
        X[:, :5] = np.nan
    if labels_by_subject:
        y = np.arange(120) // 4 % 2
    columns = [f"{channel}__f{j % 5}" for j, channel in enumerate(channels)]
    subjects = [f"s{i // 4}" for i in range(len(y))]
    made = FeatureTable(pd.DataFrame(X, columns=columns), np.where(y == 1, "MDD", "HC"), subjects)
    made.write(path)
    return made


def names_of(ranking):
    return (ranking["channel"] + "__" + ranking["feature"]).tolist()


def test_the_ranking_is_that_of_the_selector(tmp_path):
    made = write_table(tmp_path / "t.parquet")
    words = ["select", tmp_path / "t.parquet", "-o", tmp_path / "r.csv", "--k", 3]
    done = run(*words)
    assert done.exit_code == 0, done.text
    ranking = pd.read_csv(tmp_path / "r.csv")
    selector = IDFSMEC(n_features_to_select=3)
    selector.fit(made.X, made.y, groups=made.subjects)
    assert names_of(ranking) == made.X.columns[np.argsort(selector.ranking_)].tolist()
    assert ranking["selected"].sum() == 3
    assert "First 4 of 4 channels" in done.text
    refused = run(*words)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert run(*words, "--force").exit_code == 0


def test_several_tables_are_one_and_channels_that_carry_nothing_are_said(tmp_path):
    made = write_table(tmp_path / "t.csv", missing_channel=True)
    for name, part in (("a", slice(0, 60)), ("b", slice(60, 120))):
        made.take(np.arange(120)[part]).write(tmp_path / f"{name}.csv")
    whole = run("select", tmp_path / "t.csv", "-o", tmp_path / "r.csv")
    assert whole.exit_code == 0, whole.text
    assert "E1 (never observed)" in whole.text
    assert "First 3 of 3 channels" in whole.text
    parts = cli.select([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "parts.csv")
    assert names_of(parts) == names_of(pd.read_csv(tmp_path / "r.csv"))


def test_tuning_says_what_was_chosen(tmp_path):
    table = make_hospitals(3, effect=3.0).write(tmp_path / "t.parquet")
    done = run("select", table, "-o", tmp_path / "r.csv", "--tune", "--k", 2)
    assert done.exit_code == 0, done.text
    assert "n_features_to_select = 2 (log loss per participant" in done.text
    assert set(pd.read_csv(tmp_path / "r.csv")["channel"].head(2)) == {"E1", "E2"}


def test_halves_of_the_subjects_say_how_stable_each_feature_is(tmp_path):
    made = write_table(tmp_path / "t.parquet")
    words = ["select", tmp_path / "t.parquet", "-o", tmp_path / "r.csv"]
    done = run(*words, "--resamples", 20)
    assert done.exit_code == 0, done.text
    ranking = pd.read_csv(tmp_path / "r.csv")
    own = StabilitySelector(IDFSMEC(), n_resamples=20, random_state=0)
    own.fit(made.X, made.y, groups=made.subjects)
    expected = dict(zip(made.X.columns, own.frequencies_, strict=True))
    assert ranking["frequency"].tolist() == pytest.approx(
        [expected[name] for name in names_of(ranking)]
    )
    assert ranking["stable"].sum() == own.support_.sum()
    assert f"Stability {own.stability_.value:.2f}" in done.text
    assert f"at least {100 * own.threshold_:.0f} %" in done.text


def test_sites_of_a_table_are_harmonized(tmp_path):
    table = make_hospitals(3, shift=4.0, effect=3.0).write(tmp_path / "wards.parquet")
    ranking = cli.select(table, tmp_path / "rows.csv", harmonize=True)
    assert set(ranking["feature"].head(2)) == {"f1"}
    pd.testing.assert_frame_equal(ranking, pd.read_csv(tmp_path / "rows.csv"))


def test_a_folder_of_files_is_one_table(tmp_path):
    made = write_table(tmp_path / "all.parquet")
    for part in (0, 1):
        folder = tmp_path / "data" / f"part{part}"
        folder.mkdir(parents=True)
        made.take(np.arange(120)[60 * part : 60 * part + 60]).write(folder / "x.parquet")
    weights = {}
    for source in ("data", "all.parquet"):
        ranking = cli.select(tmp_path / source, tmp_path / "r.csv", force=True)
        weights[source] = ranking.set_axis(names_of(ranking))["feature_weight"].sort_index()
    pd.testing.assert_series_equal(weights["data"], weights["all.parquet"], atol=1e-9)
    made.by_subject().write(tmp_path / "means.parquet")
    wanted = cli.select(tmp_path / "means.parquet", tmp_path / "r.csv", electrodes=2, force=True)
    for source in ("data", "all.parquet"):
        means = {"per": "participant", "electrodes": 2, "force": True}
        ranking = cli.select(tmp_path / source, tmp_path / "r.csv", **means)
        pd.testing.assert_frame_equal(ranking, wanted, atol=1e-9)
    (tmp_path / "a.summary").touch()
    refused = run("select", tmp_path / "a.summary", "--per", "participant")
    assert "--per needs the rows of participants" in refused.text
    made.select_channels(["E2"]).write(tmp_path / "data" / "part1" / "x.parquet")
    refused = run("select", tmp_path / "data", "-o", tmp_path / "r.csv", "--force")
    assert refused.exit_code == 2
    assert "has other columns than" in refused.text
    (tmp_path / "empty").mkdir()
    assert "no .parquet file" in run("select", tmp_path / "empty").text


# --- sites that share sums ----------------------------------------------------------------


def write_sites(folder, sizes=(40, 40, 20), seed=0):
    """Tables of sites with a fifth of six channels missing; channel C6 differs."""
    rng = np.random.default_rng(seed)
    paths, first = [], 0
    columns = [f"C{v}__f{j}" for v in range(1, 7) for j in range(2)]
    for number, size in enumerate(sizes):
        y = np.repeat(np.arange(size) % 2, 4)
        X = rng.normal(size=(size, 6, 2)).repeat(4, axis=0) + rng.normal(size=(4 * size, 6, 2))
        X[:, 5] += 1.5 * y[:, None]
        X[rng.random((size, 6)).repeat(4, axis=0) < 0.2] = np.nan
        subjects = np.repeat([f"s{first + i}" for i in range(size)], 4)
        first += size
        table = FeatureTable(
            pd.DataFrame(X.reshape(4 * size, 12), columns=columns),
            np.where(y == 1, "MDD", "HC"),
            subjects,
        )
        paths.append(table.write(folder / f"site{number}.parquet"))
    return paths


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Three sites of 40, 40 and 20 participants, as tables and as summaries."""
    folder = tmp_path_factory.mktemp("sites")
    tables = write_sites(folder)
    for table in tables:
        words = ["-o", folder / table.stem / "site.summary", "--site", table.stem]
        (folder / table.stem).mkdir()
        words += ["--study-key", folder / "study.key", "--ledger", folder / f"{table.stem}.sqlite"]
        done = run("summarise", table, *words)
        assert done.exit_code == 0, done.text
    return tables, [folder / table.stem / "site.summary" for table in tables]


def test_the_planted_channel_ranks_first_although_a_small_site_suppresses_it(sites, tmp_path):
    tables, summaries = sites
    done = run("select", *summaries, "-o", tmp_path / "r.csv", "--k", 2)
    assert done.exit_code == 0, done.text
    ranking = pd.read_csv(tmp_path / "r.csv")
    assert ranking["channel"].head(2).tolist() == ["C6", "C6"]
    pooled = cli.select(tables, tmp_path / "pooled.csv", k=2)
    assert pooled["channel"].head(2).tolist() == ["C6", "C6"]
    lines = done.stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("  C6: "))
    assert "site0 (" in line
    assert "site1 (" in line
    assert sum(line.startswith("  C") for line in lines) == 6
    assert any(line.startswith("Suppressed by site2: ") for line in lines)
    assert "Channels are weighted by their loss on" in done.text


def test_a_table_of_ones_own_counts_beside_summaries_of_others(sites, tmp_path):
    tables, summaries = sites
    done = run("select", *summaries[:2], tables[2], "-o", tmp_path / "r.csv", "--harmonize", "all")
    assert done.exit_code == 0, done.text
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("  C6: "))
    assert all(f"site{number} (" in line for number in range(3))
    twice = run("select", summaries[0], summaries[0], "-o", tmp_path / "x.csv")
    assert twice.exit_code == 2
    assert "it would count twice" in twice.text


def test_a_summary_is_described_and_its_participants_are_in_the_ledger(sites, tmp_path):
    tables, summaries = sites
    described = run("summarise", summaries[0])
    assert described.exit_code == 0
    assert "site0" in described.text
    assert "Nothing else is in the file" in described.stdout
    assert max(map(len, described.stdout.splitlines())) <= 80
    folder = summaries[0].parents[1]
    assert len((folder / "study.key").read_bytes()) == 32
    words = ["summarise", tables[0], "-o", summaries[0], "--force"]
    words += ["--ledger", folder / "site0.sqlite"]
    other_key = run(*words, "--study-key", tmp_path / "other.key")
    assert other_key.exit_code == 2
    assert "release 1 has participants of this one" in other_key.text
    assert not (tmp_path / "other.key").exists()


def test_conditions_are_released_side_by_side_and_ranked_apart(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(240, 4)), columns=[f"{c}__{f}" for c in "ab" for f in "xy"])
    rows = pd.DataFrame({"condition": np.repeat(["open", "closed"], 120)})
    y = np.tile(["HC", "MDD"], 120)
    X.loc[(y == "MDD") & (rows["condition"] == "closed"), "b__y"] += 2
    names = np.tile([f"s{i}" for i in range(120)], 2)
    FeatureTable(X, y, names, rows=rows).write(tmp_path / "t.parquet")
    (tmp_path / "study.key").write_bytes(bytes(range(32)))  # decides folds
    words = ["-o", tmp_path / "s.summary", "--ledger", tmp_path / "l"]
    words += ["--study-key", tmp_path / "study.key", "--condition", "open,closed"]
    done = run("summarise", tmp_path / "t.parquet", *words)
    assert done.exit_code == 0, done.text
    ranking = tmp_path / "r.csv"
    for condition, first in (([], "b (closed)"), (["--condition", "closed"], "b")):
        done = run("select", tmp_path / "s.summary", "-o", ranking, "--force", *condition)
        assert done.exit_code == 0, done.text
        assert pd.read_csv(ranking)["channel"].iloc[0] == first
    assert run("select", tmp_path / "s.summary", "--condition", "x", "-o", ranking).exit_code == 2


def test_electrodes_of_a_site_are_named_in_a_file(tmp_path):
    rng = np.random.default_rng(0)
    channels = ("F3", "F4", "X1", "X2", "O1", "O2")
    X = pd.DataFrame(rng.normal(size=(100, 6)), columns=[f"{c}__x" for c in channels])
    X = X.mask(rng.random(X.shape) < 0.2)
    FeatureTable(X, ["HC", "MDD"] * 50, [f"s{i}" for i in range(100)]).write(tmp_path / "t.csv")
    words = ["summarise", tmp_path / "t.csv", "-o", tmp_path / "s.summary", "--ledger"]
    refused = run(*words, tmp_path / "l")
    assert refused.exit_code == 2
    assert "No electrode has the name X1, X2." in refused.text
    (tmp_path / "names.txt").write_text("X1\nX2\n")
    done = run(*words, tmp_path / "l", "--electrodes", tmp_path / "names.txt")
    assert done.exit_code == 0, done.text


def test_what_a_site_may_release_is_chosen(sites, tmp_path):
    tables, _ = sites
    words = ["summarise", tables[2], "-o", tmp_path / "s.summary", "--min-subjects", 5]
    words += ["--ledger", tmp_path / "l"]
    done = run(*words, "--labels", "HC,MDD,BD")
    assert done.exit_code == 0, done.text
    assert "BD: 0" in done.text
    assert run(*words).exit_code == 2
    assert "--min-subjects 0: give 5 or more" in run(*words, "--min-subjects", 0, "--force").text


def test_where_the_table_has_age_and_sex_the_difference_is_adjusted(tmp_path):
    made = write_table(tmp_path / "t.parquet")
    plain = cli.select([tmp_path / "t.parquet"], tmp_path / "r.csv")
    assert {"p", "q"} < set(plain)
    assert "g_adjusted" not in plain
    rng = np.random.default_rng(0)
    age = rng.normal(40, 9, 30)[np.arange(120) // 4]
    rows = pd.DataFrame({"age": age, "eyes": "closed"}, index=made.X.index)
    replace(made, rows=rows).write(tmp_path / "aged.parquet")
    ranking = cli.select([tmp_path / "aged.parquet"], tmp_path / "aged.csv")
    expected = adjusted_effects(made.X, made.y, made.subjects, rows[["age"]])
    expected = expected.set_index(made.X.columns).loc[names_of(ranking)]
    np.testing.assert_allclose(ranking[["g_adjusted", "p_adjusted"]], expected)


def write_scored(path, name="bdi"):
    """Forty participants, of whom four have no score; the score is that of a feature of Cz."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 4)), columns=["F3__a", "F3__b", "Cz__a", "Cz__b"])
    score = pd.Series(np.round(15 + 6 * X["Cz__a"] + rng.normal(size=40)))
    rows = pd.DataFrame({name: score.where(np.arange(40) % 10 > 0), "age": rng.normal(40, 9, 40)})
    labels = np.where(score > 15, "MDD", "HC")
    table = FeatureTable(X, labels, [f"s{i:02}" for i in range(40)], rows=rows)
    table.write(path)
    return table


def test_a_column_is_ranked_as_a_score_and_who_lacks_it_is_counted(tmp_path):
    table = write_scored(tmp_path / "t.parquet")
    words = ["select", tmp_path / "t.parquet", "-o", tmp_path / "r.csv"]
    done = run(*words, "--target", "BDI", "--resamples", 10)
    assert done.exit_code == 0, done.text
    assert "score bdi of 36 participants" in done.text
    assert "4 without it are left out" in done.text
    assert "Spearman's r [95 % CI]" in done.text
    ranking = pd.read_csv(tmp_path / "r.csv")
    with pytest.warns(UserWarning, match="4 of 40"):
        scored = table.with_target("bdi")
    selector = IDFSMEC(numeric=True).fit(scored.X, scored.scores)
    assert names_of(ranking) == scored.X.columns[np.argsort(selector.ranking_)].tolist()
    assert ranking.loc[0, "channel"] == "Cz"
    assert ranking.loc[0, "direction"] == "rises with the score"
    assert {"pearson_low", "r_adjusted", "p_adjusted", "frequency"} <= set(ranking)


def test_labels_become_grades_in_the_order_given(tmp_path):
    write_scored(tmp_path / "t.parquet")
    words = ["select", tmp_path / "t.parquet", "-o", tmp_path / "r.csv"]
    done = run(*words, "--order", "HC,MDD")
    assert done.exit_code == 0, done.text
    assert "grades HC < MDD of 40 participants" in done.text


def test_a_target_that_is_none_is_refused_with_a_remedy(tmp_path):
    path = tmp_path / "t.csv"
    table = write_scored(tmp_path / "t.parquet")
    replace(table, y=pd.Series(range(40))).write(path)
    words = ["select", path, "-o", tmp_path / "r.csv"]
    for options, remedy in (
        ([], "give --target label to take it as a score, or --order"),
        (["--target", "phq9"], "has no column 'phq9' to predict; it has label, bdi, age"),
        (["--target", "bdi", "--order", "a,b"], "cannot be combined"),
        (["--order", "1,2"], "lacks the label"),
    ):
        done = run(*words, *options)
        assert done.exit_code == 2
        assert remedy in done.text
    assert run(*words, "--target", "label").exit_code == 0
