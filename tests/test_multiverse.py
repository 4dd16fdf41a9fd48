"""A multiverse says what survives other choices, and one test is about all specifications."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from idfsmec import cli
from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features import FeatureSettings, extract_table
from idfsmec.features.batch import extract_tables
from idfsmec.features.settings import DEFAULT_CHOICES, read_choices
from idfsmec.multiverse import Multiverse, joint_test, make_specifications, run_multiverse
from idfsmec.recordings import simulate_cohort
from idfsmec.report.multiverse import HEADLINES, describe_multiverse, write_multiverse

CHOICES = {
    "reference": {"as recorded": {"reference": "keep"}, "average": {"reference": "average"}},
    "epochs": {"5 s": {"epoch": 5}, "4 s": {"epoch": 4}},
}
SETTINGS = FeatureSettings(features=["ap", "log_variance"], epoch=5)


# --- specifications --------------------------------------------------------------------------


def test_each_choice_is_changed_alone_before_combinations_are_drawn():
    planned = make_specifications(n_specifications=20)
    default = planned[0].options
    changed = [{n: o for n, o in s.options.items() if o != default[n]} for s in planned]
    alone = [{name: o} for name, of in DEFAULT_CHOICES.items() for o in list(of)[1:]]
    assert changed[: 1 + len(alone)] == [{}, *alone]
    assert len({tuple(s.options.values()) for s in planned}) == len(planned) == 20
    assert planned[0].settings == FeatureSettings()
    assert planned[1].settings == FeatureSettings(reference="average")


def test_more_specifications_begin_with_the_same_ones_and_end_with_all():
    few, many = (make_specifications(n_specifications=n, seed=1) for n in (15, 25))
    assert many[:15] == few
    assert len(make_specifications(SETTINGS, CHOICES, n_specifications=100)) == 4


def test_settings_decide_which_option_is_the_default():
    settings = FeatureSettings(reference="average", epoch=5)
    planned = make_specifications(settings, n_specifications=30)
    assert planned[0].options["reference"] == "average"
    assert "epochs" not in planned[0].options  # no option of the default list has 5 s
    own = make_specifications(settings, {"epochs": {"4 s": {"epoch": 4}}})
    assert [s.options["epochs"] for s in own] == ["as set", "4 s"]
    assert [s.settings.epoch for s in own] == [5, 4]


def test_too_few_specifications_and_choices_that_do_not_go_together_are_refused():
    with pytest.raises(InputError, match="give at least 10, the default and each choice"):
        make_specifications(n_specifications=9)
    wrong = {"epochs": {"10 s": {"epoch": 10}, "short": {"epoch": 1, "overlap": 2}}}
    with pytest.raises(InputError, match="choices, short: The overlap must be"):
        make_specifications(choices=wrong)
    with pytest.raises(InputError, match="there is no setting 'epohc'"):
        make_specifications(choices={"epochs": {"4 s": {"epohc": 4}}})


def test_a_settings_file_has_the_default_choices_and_may_have_others(tmp_path):
    path = FeatureSettings().to_toml(tmp_path / "settings.toml")
    assert make_specifications(choices=read_choices(path)) == make_specifications()
    assert FeatureSettings.from_toml(path) == FeatureSettings()
    path.write_text('[choices.reference]\naverage = {reference = "average"}\n')
    assert read_choices(path) == {"reference": {"average": {"reference": "average"}}}
    path.write_text("[choices.reference]\naverage = 3\n")
    with pytest.raises(InputError, match=r"settings\.toml: choices are tables of options"):
        read_choices(path)


# --- extraction ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohort():
    return simulate_cohort(8, 3, duration=20, effect_size=2, detached=0.3, random_state=1)


def test_tables_of_several_settings_are_those_of_each_alone(cohort):
    options = [changes for of in DEFAULT_CHOICES.values() for changes in of.values()]
    settings = [FeatureSettings(epoch=5).changed(changes) for changes in options]
    together = extract_tables(cohort.recordings[:2], settings)
    for each, extraction in zip(settings, together, strict=True):
        alone = extract_table(cohort.recordings[:2], each)
        assert extraction.table.equals(alone.table)
        assert extraction.contents == alone.contents


def test_a_recording_is_loaded_once_for_all_settings(cohort):
    loads = []
    first = cohort.recordings[0]
    counted = replace(first, load=lambda: loads.append(1) or first.load())
    list(extract_tables([counted], [SETTINGS, replace(SETTINGS, epoch=4), replace(SETTINGS)]))
    assert loads == [1]


# --- the joint test --------------------------------------------------------------------------


def plain_joint_test(values, y, n_permutations, seed):
    """By the definition, with SciPy's t tests, one at a time."""

    def statistics(target):
        t, q = np.full((2, *values.shape[::2]), np.nan)
        for s, of_one in enumerate(values):
            test = stats.ttest_ind(
                of_one[target == 1], of_one[target == 0], axis=0, nan_policy="omit"
            )
            t[s], q[s] = test.statistic, stats.false_discovery_control(test.pvalue)
        sides = [((q <= 0.05) & (side * t > 0)).mean(axis=0) for side in (1, -1)]
        return t, q, np.abs(np.median(t, axis=0)), np.maximum(*sides)

    t, q, *found = statistics(y)
    orders = np.random.default_rng(seed).permuted(
        np.tile(np.arange(y.size), (n_permutations, 1)), axis=1
    )
    null = [[of.max() for of in statistics(y[order])[2:]] for order in orders]
    p = [
        (1 + (np.array(null)[:, i, None] >= found[i] - 1e-9).sum(axis=0)) / (n_permutations + 1)
        for i in (0, 1)
    ]
    return t, q, *p


def test_the_joint_test_is_that_of_its_definition():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [12, 9])
    signal = rng.normal(size=(21, 4))
    signal[:, 1] += 1.3 * y
    values = signal + rng.normal(scale=0.6, size=(5, 21, 4))
    values[rng.random(values.shape) < 0.05] = np.nan
    ours = joint_test(values, y, n_permutations=39, seed=5)
    for mine, plain in zip(ours, plain_joint_test(values, y, 39, 5), strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-7)


def test_a_score_is_tested_by_spearmans_correlation():
    rng = np.random.default_rng(0)
    score = rng.normal(size=15)
    values = rng.normal(size=(2, 15, 3)) + np.array([0.8, 0, 0]) * score[:, None]
    joint = joint_test(values, score, numeric=True, n_permutations=9)
    for of_one, t in zip(values, joint.t, strict=True):
        rho = [stats.spearmanr(column, score).statistic for column in of_one.T]
        np.testing.assert_allclose(t / np.sqrt(13 + t**2), rho)


def test_a_feature_that_most_specifications_lack_is_not_tested():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 12, 2))
    values[:3, :, 1] = np.nan
    joint = joint_test(values, np.arange(12) % 2, n_permutations=9)
    assert np.isnan(joint.p_median).tolist() == [False, True]
    assert np.isnan(joint.t[:, 1]).tolist() == [True] * 3 + [False] * 2


def test_permutations_in_blocks_give_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    values, y = rng.normal(size=(3, 14, 5)), np.arange(14) % 2
    whole = joint_test(values, y, n_permutations=29)
    monkeypatch.setattr("idfsmec.multiverse._BLOCK", 40)
    for one, other in zip(whole, joint_test(values, y, n_permutations=29), strict=True):
        np.testing.assert_array_equal(one, other)


# --- a whole run -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(cohort, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    lines = ["path,subject,label"]
    for recording in cohort.recordings:
        path = folder / f"{recording.subject}_raw.fif"
        recording.load().save(path, verbose="error")
        lines.append(f"{path.name},{recording.subject},{recording.label}")
    (folder / "study.csv").write_text("\n".join(lines))
    settings = SETTINGS.to_toml(folder / "settings.toml")
    text = settings.read_text().partition("[choices")[0]
    choices = [
        f"[choices.{name}]\n"
        + "\n".join(
            f'"{o}" = {{{k} = {json.dumps(v)}}}' for o, c in of.items() for k, v in c.items()
        )
        for name, of in CHOICES.items()
    ]
    settings.write_text(text + "\n".join(choices))
    return folder


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("finished") / "out"
    outcome = cli.multiverse(files / "study.csv", out, files / "settings.toml", jobs=1)
    return out, outcome


def equal(first, second):
    for name in ("specifications", "effects", "features", "moves"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))


def test_a_run_that_was_stopped_continues_and_ends_alike(files, finished, tmp_path):
    recordings = finished_recordings(files)
    statuses = []

    def stop(event):
        if event.task == "features" and event.item is not None:
            statuses.append(event.item.status)
            if len(statuses) == 17:
                raise KeyboardInterrupt

    how = {"choices": CHOICES, "parts": tmp_path / "parts"}
    with pytest.raises(KeyboardInterrupt):
        run_multiverse(recordings, SETTINGS, progress=stop, **how)
    statuses.clear()
    outcome = run_multiverse(
        recordings,
        SETTINGS,
        progress=lambda e: statuses.append(e.item.status) if e.item is not None else None,
        **how,
    )
    assert statuses[:16] == ["resumed"] * 16
    assert statuses.count("done") == len(statuses) - statuses.count("resumed") > 0
    equal(outcome, finished[1])


def finished_recordings(files):
    from idfsmec.recordings import find_recordings

    return find_recordings(str(files / "study.csv"))


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(files, finished):
    outcome = run_multiverse(finished_recordings(files), SETTINGS, choices=CHOICES, n_jobs=2)
    equal(outcome, finished[1])


def test_the_default_specification_is_the_study_itself(files, finished):
    table = extract_table(finished_recordings(files), SETTINGS).table
    row = finished[1].specifications.iloc[0]
    assert (row["n_subjects"], row["n_samples"]) == (8, len(table))
    assert row["missing"] == pytest.approx(1 - table.observed.to_numpy().mean())
    means = table.by_subject()
    effects = finished[1].effects.query("specification == 0").set_index("feature")
    for name in ("Fp1__ap_alpha", "Fp2__log_variance"):
        sides = [
            means.X.loc[(means.y == k).to_numpy(), name].dropna() for k in ("depressed", "control")
        ]
        p = stats.ttest_ind(*sides).pvalue
        assert effects.loc[name, "p"] == pytest.approx(p)


def test_the_command_writes_page_tables_and_json(finished, files):
    out, outcome = finished
    page = (out / "multiverse.html").read_text()
    assert "8 participants decide nothing" in page
    assert page.count("<svg") == 4
    assert page.count("<title>") > 4 * 4  # values under the pointer
    data = json.loads((out / "multiverse.json").read_text())
    assert len(data["specifications"]) == len(pd.read_csv(out / "specifications.csv")) == 4
    assert data["options"]["epochs"] == ["5 s", "4 s"]
    assert len(pd.read_csv(out / "effects.csv")) == 4 * len(outcome.features)
    with pytest.raises(ExistingFileError):
        cli.multiverse(files / "study.csv", out, files / "settings.toml")


@pytest.mark.filterwarnings("ignore:Channels without information")
def test_a_feature_and_its_logarithm_count_as_one_unless_a_specification_has_both(cohort):
    features = {"power": ["ap"], "logarithm": ["log_ap"], "both": ["ap", "log_ap"]}
    choices = {"powers": {name: {"features": names} for name, names in features.items()}}
    settings = FeatureSettings(features=["ap"], epoch=5)
    outcome = run_multiverse(cohort.recordings, settings, choices=choices)
    found = outcome.effects.dropna(subset=["effect"]).groupby("specification")["feature"]
    plain, logarithm, both = (set(of_one) for _, of_one in found)
    assert logarithm == plain
    assert both == plain | {name.replace("ap_", "log_ap_") for name in plain}
    of_log = outcome.effects.query("feature == 'Fp1__log_ap_alpha'")["effect"].to_numpy()
    assert of_log[2] == outcome.effect_of("Fp1__ap_alpha")[1]


def test_a_study_of_three_classes_is_refused(cohort):
    labels = ["a", "b", "c", "a", "b", "c", "a", "b"]
    recordings = [replace(r, label=k) for r, k in zip(cohort.recordings, labels, strict=True)]
    with pytest.raises(InputError, match="there are 3 labels, and a multiverse compares two"):
        run_multiverse(recordings, SETTINGS, choices={"a": {"b": {"epoch": 5}}})


def test_a_score_has_correlations():
    cohort = simulate_cohort(12, 3, duration=10, score=True, random_state=0)
    choices = {"reference": CHOICES["reference"]}
    outcome = run_multiverse(cohort.recordings, SETTINGS, choices=choices, target="bdi")
    assert outcome.target == "bdi"
    assert set(outcome.features["direction"]) <= {"rises with the score", "falls with the score"}
    assert outcome.effects["effect"].abs().max() <= 1
    assert "12 participants decide nothing" in describe_multiverse(outcome)[0]


# --- what is said ----------------------------------------------------------------------------


def make(effects=(1.0,) * 8, q=(0.01,) * 8, levels=("green",) * 8, p=0.004, n=(40, 40)):
    """Return a multiverse of eight specifications of two choices, and of one feature."""
    options = pd.DataFrame(
        {"reference": ["as recorded", "average"] * 4, "epochs": ["10 s"] * 4 + ["4 s"] * 4}
    )
    table = options.assign(score=0.7, low=0.6, high=0.8, level=levels, n_subjects=sum(n))
    table = table.assign(n_samples=100, missing=0.0, n_significant=1)
    first = pd.DataFrame({"effect": effects, "q": q, "p": q, "low": -1.0, "high": 2.0, "rank": 1})
    rows = first.assign(feature="F3__de_alpha", specification=range(8))
    share = (np.sign(effects) == np.sign(np.median(effects))).mean()
    features = pd.DataFrame(
        {
            "feature": ["F3__de_alpha"],
            "direction": ["higher in MDD"],
            "effect": [np.median(effects)],
            "share_direction": [share],
            "share_first": [1.0],
            "share_significant": [(np.array(q) <= 0.05).mean()],
            "p_median": [p],
            "p_share": [p],
        }
    )
    columns = ["choice", "option", "instead_of", "difference", "low", "high", "p"]
    moves = pd.DataFrame(
        [["reference", "average", "as recorded", -0.1, -0.2, -0.01, 0.02]], columns=columns
    )
    choices = {name: list(dict.fromkeys(options[name])) for name in options}
    return Multiverse(choices, table, rows, features, moves, ["HC", "MDD"], list(n))


ALPHA = r"differential entropy \(alpha\) at F3"
ONLY_RECORDED = (1.0, 0.1) * 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": (4, 4)}, "8 participants decide nothing: .* only if its AUC is 0.9[0-9] or more"),
        (
            {"p": 0.3, "q": (0.01, 0.4) * 4, "effects": ONLY_RECORDED},
            "Differential .* is higher in MDD under the default specification and significant in "
            r"4 of 8, but over all specifications no difference is shown \(joint p = 0.3\): the "
            "result depends on the choice of reference",
        ),
        ({"p": 0.3, "q": (0.4,) * 8}, r"Over 8 specifications no difference is shown \(smallest"),
        (
            {"levels": ("red",) * 8},
            "the audit is red in all: this may be an effect of acquisition",
        ),
        (
            {"levels": ("green", "red") * 4},
            f"In 8 of 8 specifications {ALPHA} is higher in MDD \\(joint p = 0.004\\); the audit "
            "is green in 4 and red in 4: the result depends on the choice of reference",
        ),
        (
            {"levels": ("green", "red", "red", "green") * 2},
            "green in 4 and red in 4: the result depends on several choices",
        ),
        (
            {"effects": ONLY_RECORDED},
            "but with reference: average it is less than half as large: the result depends on the "
            r"choice of reference\. The audit is green in all",
        ),
        (
            {"effects": (1.0, 1.0, 1.0, -0.9, -0.9, 1.0, 1.0, 1.0)},
            "In 6 of 8 .*, but in the others the other way round: the result depends on several",
        ),
        ({}, "the audit is green in all: the result survives these choices"),
    ],
)
def test_the_sentence_on_top_follows_the_evidence(given, said):
    assert re.search(said, describe_multiverse(make(**given))[0])


def test_every_row_of_the_table_of_headlines_is_reached():
    assert len(HEADLINES) == 7


def test_the_choice_that_moves_the_score_most_is_named():
    text = " ".join(describe_multiverse(make()))
    assert "reference, average instead of as recorded, −0.10 (−0.20 to −0.01), p = 0.02" in text


def test_an_effect_that_one_option_alone_has_depends_on_it():
    assert make(effects=ONLY_RECORDED).depends_on("F3__de_alpha") == ("reference", "average")
    assert make(effects=(1.0, 0.6) * 4).depends_on("F3__de_alpha") == ("", "")


def test_an_existing_page_is_not_replaced_unasked(tmp_path):
    page = write_multiverse(make(), tmp_path)
    assert "F3" in page.read_text()
    with pytest.raises(ExistingFileError):
        write_multiverse(make(), tmp_path)
