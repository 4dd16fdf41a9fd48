"""An audit in words: every combination of answers has a level, every sentence its condition."""

import itertools
from dataclasses import replace
from string import Formatter

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from idfsmec.audit import Audit
from idfsmec.audit.levels import (
    ANSWERS,
    LEVELS,
    answers_of,
    found_units,
    judge,
    what_was_missed,
)
from idfsmec.audit.sentences import SENTENCES, TITLES, _conditions, _values, say, say_audit

SCORE = {"auc": 0.8, "low": 0.7, "high": 0.9}
MISSED = {"auc": 0.7, "to_find": 0.75, "n": 90}
MATCHED = {
    **SCORE,
    "estimable": True,
    "n_subjects": [20, 19],
    "n_effective": [14.2, 11.0],
    "n_pairs": 40,
    "acquisition_auc": 0.55,
    "failed": False,
}
SHUFFLED = {"auc": [0.5, 0.52], "low": 0.4, "high": 0.6}
FAMILY = {"age": "participants", "sex": "participants"}
KINDS = {"age": "subject", "sex": "subject"}


def facts(*names, p=0.001, level="", shape="value"):
    rows = [
        {
            "variable": name,
            "family": FAMILY.get(name, "acquisition"),
            "kind": KINDS.get(name, "device"),
            "shape": shape,
            "level": level,
            "class": 1,
            "higher": True,
            "p": p,
            "p_corrected": p,
            **SCORE,
        }
        for name in names
    ]
    return pd.DataFrame(rows)


NO_FACTS = pd.DataFrame(columns=facts("sfreq").columns)


def carried(name="sfreq", p=0.001):
    family = FAMILY.get(name, "acquisition")
    return [{"variables": [name], "p": p, "p_holm": p, "family": family}]


def make(why="carried", variables=None, **known):
    """Make an audit in which these things were found."""
    level = next(level for _, level, name in LEVELS if name == why)
    known = {"eeg": SCORE, "missed": MISSED} | known
    rows = facts("sfreq") if variables is None else variables
    return Audit(level, why, ["HC", "MDD"], [20, 21], rows, **known)


NOTHING = {"variables": facts("sfreq", "age", p=0.6)}
RED = {"carried": carried()}
AGE = {"variables": facts("age")}
TWO = {"variables": pd.concat([facts("sfreq", "duration", p=0.4), facts("age", p=0.4)])}
PAIR = [{"variables": ["sfreq", "duration"], "p_corrected": 0.01, "family": "acquisition"}]
#: Of each sentence an audit for which it is printed, and words of it.
EXAMPLES = {
    ("reason", "carried"): (RED, "Sampling rate differs between HC and MDD, and the EEG's"),
    ("reason", "coincide"): (
        {"why": "coincide", "coincide": 0.97},
        "nearly coincides with the diagnosis (AUC 0.97 on held-out participants).",
    ),
    ("reason", "untestable"): (
        {"why": "untestable", "carried": carried(p=None)},
        "Whether the EEG's prediction follows sampling rate cannot be tested",
    ),
    ("reason", "not carried"): (
        {"why": "not carried", "variables": facts("sfreq", "duration")},
        "differ between HC and MDD. The EEG's prediction is not shown to follow them.",
    ),
    ("reason", "no effect"): (
        {"why": "no effect", "eeg": SCORE | {"low": 0.4}},
        "are not shown to differ between them (AUC 0.80 (95 % CI 0.40 to 0.90)).",
    ),
    ("reason", "not scored"): ({"why": "not scored", "eeg": {}}, "The EEG was not scored."),
    ("reason", "participants"): (AGE | {"why": "participants"}, "Age differs between HC and MDD."),
    ("reason", "undescribed"): (
        {"why": "undescribed", "variables": NO_FACTS},
        "does not say how recordings were made.",
    ),
    ("reason", "few"): (
        NOTHING | {"why": "few"},
        "None of 2 facts is found to be associated with the diagnosis, and with 41 participants "
        "(20 HC and 21 MDD) only a strong",
    ),
    ("reason", "none"): (NOTHING | {"why": "none"}, "None of 2 facts is found to be associated"),
    ("consequence", "carried"): (RED, "this may be an effect of acquisition, not of the illness."),
    ("consequence", "coincide"): ({"why": "coincide"}, "by illness or acquisition."),
    ("consequence", "untestable"): ({"why": "untestable"}, "may be an effect of acquisition."),
    ("consequence", "not carried"): ({"why": "not carried"}, "Report the facts beside it."),
    ("consequence", "participants unadjusted"): (
        AGE | {"why": "participants"},
        "Report the EEG adjusted for age.",
    ),
    ("consequence", "participants adjusted"): (
        AGE | {"why": "participants", "regressed": SCORE | {"variables": ["age"]}},
        "The EEG has AUC 0.80 (95 % CI 0.70 to 0.90); adjusted for age (regressed out inside the "
        "folds) it has AUC 0.80 (95 % CI 0.70 to 0.90), above 0.5.",
    ),
    ("consequence", "body"): (
        {"variables": facts("blinks"), "carried": carried("blinks")},
        "may be a consequence of the illness.",
    ),
    ("consequence", "undescribed"): ({"why": "undescribed"}, "Make the table with idfsmec"),
    ("consequence", "none"): (NOTHING | {"why": "none"}, "not in the table were not tested."),
    ("missed", "power"): (
        {"missed": MISSED | {"to_find": 0.7}},
        "with 41 participants a fact is found with a power of 80 % if its AUC is 0.70 or more; "
        "for 0.70, the AUC of a fact that explains the EEG's and is measured with a reliability "
        "of 0.25, about 90 participants would do.",
    ),
    ("missed", "no power"): (
        {"missed": MISSED | {"auc": 1.0}},
        "with 41 participants no fact is found with a power of 80 %; for 0.75, about 90",
    ),
    ("missed", "untested"): ({"missed": {}}, "any difference, because no fact was tested."),
    ("evidence", "by site"): ({"folds": "site", "n_splits": 3}, "one of 3 sites left out at a"),
    ("evidence", "acquisition found"): (
        {},
        "1 fact tested: sampling rate, higher in MDD: AUC 0.80 (95 % CI 0.70 to 0.90), corrected "
        "p 0.001.",
    ),
    ("evidence", "acquisition none"): (NOTHING, "were recorded: of 1 fact tested none"),
    ("evidence", "acquisition untested"): (AGE, "How participants were recorded was not tested"),
    ("evidence", "participants found"): (AGE, "Who was recorded, 1 fact tested: age, higher in"),
    ("evidence", "participants none"): (NOTHING, "Who was recorded: of 1 fact tested none"),
    ("evidence", "participants untested"): ({}, "Who was recorded was not tested"),
    ("evidence", "pair"): (
        TWO | {"pairs": PAIR},
        "Sampling rate and length of the recording are associated with the diagnosis jointly",
    ),
    ("evidence", "carries"): (RED, "prediction follows sampling rate (p 0.001)."),
    ("evidence", "carries not"): (
        {"carried": carried(p=0.4)},
        "not shown to follow sampling rate",
    ),
    ("evidence", "carries untestable"): ({"carried": carried(p=None)}, "rate cannot be tested"),
    ("evidence", "unused"): (
        {"unused": ["hour", "bmi"]},
        "Not tested: hour and bmi. Name columns that describe circumstances with --also.",
    ),
    ("evidence", "named"): ({"named": ["room"]}, "too many different values: room."),
    ("adjusted", "no match"): (
        {"matched": MATCHED | {"estimable": False, "n_pairs": 0}},
        "no participant has a match",
    ),
    ("adjusted", "few matches"): (
        {"matched": MATCHED | {"estimable": False}},
        "too few participants have a match (20 HC and 19 MDD, effective numbers 14.2 and 11.0; "
        "40 pairs). Each group needs an effective number of 8.",
    ),
    ("adjusted", "failed match"): (
        {"matched": MATCHED | {"failed": True, "acquisition_auc": 0.74}},
        "the facts still separate the matched pairs (AUC 0.74;",
    ),
    ("adjusted", "match"): (
        {"matched": MATCHED},
        "the EEG has AUC 0.80 (95 % CI 0.70 to 0.90), above 0.5. The facts have AUC 0.55",
    ),
    ("adjusted", "strata"): (
        {
            "strata": {
                "n_recorded": [
                    {"level": "19", "n_subjects": [10, 9], **SCORE},
                    {"level": "64", "n_subjects": [1, 9], "auc": None},
                ]
            }
        },
        "EEG within each number of channels in the file: 19 (10 HC and 9 MDD): AUC 0.80 (95 % "
        "CI 0.70 to 0.90); 64 (1 HC and 9 MDD): too few.",
    ),
    ("adjusted", "regressed"): (
        {"regressed": {"variables": ["sfreq"], "auc": 0.3, "low": 0.2, "high": 0.4}},
        "the EEG has AUC 0.30 (95 % CI 0.20 to 0.40), not shown to be above 0.5.",
    ),
    ("adjusted", "assumption"): (
        {"regressed": SCORE | {"variables": ["sfreq"]}},
        "assume that facts are measured without error.",
    ),
    ("leaks", "mistakes"): (
        {"leaks": {"subject": {"roc_auc": 0.7}, "before": {"roc_auc": 0.71}}},
        "selected before splitting, AUC over samples would be 0.71 instead of 0.70.",
    ),
    ("leaks", "shuffled"): (
        {"leaks": {"shuffled": SHUFFLED}},
        "Permuted labels give AUC 0.51, within the 95 % band of chance",
    ),
    ("leaks", "shuffled above chance"): (
        {"leaks": {"shuffled": SHUFFLED | {"high": 0.5}}},
        "above the 95 % band of chance (0.40 to 0.50): there is a leak.",
    ),
    ("leaks", "names untested"): (
        {"leaks": {"two_names": {"estimable": False}}},
        "was not tested: there are too few samples",
    ),
    ("leaks", "two names"): (
        {"leaks": {"two_names": {"estimable": True, "pairs": [("s1", "s2", 0.1)]}}},
        "Samples of s1 and s2 are as similar as those of one participant",
    ),
    ("leaks", "one name each"): (
        {"leaks": {"two_names": {"estimable": True, "pairs": []}}},
        "No participant seems to occur under two names.",
    ),
    ("leaks", "rows across names"): (
        {"leaks": {"repeated": {"n_across": 2, "n_repeated": 3, "pairs": [("s1", "s2")]}}},
        "2 rows occur again under another name (s1 and s2).",
    ),
    ("leaks", "rows repeated"): (
        {"leaks": {"repeated": {"n_across": 0, "n_repeated": 3}}},
        "3 rows of the same participant occur twice.",
    ),
    ("leaks", "no row repeated"): (
        {"leaks": {"repeated": {"n_across": 0, "n_repeated": 0}}},
        "No row occurs twice.",
    ),
    ("leaks", "headers"): (
        {"leaks": {"headers": {"shared_name": ["s1", "s2"], "other_condition": []}}},
        "Participants with a header with another participant's name: 2 (s1 and s2).",
    ),
    ("leading", "leading"): ({}, "Higher in MDD; corrected p 0.001."),
    ("eeg", "scored"): ({}, "untuned, participants held out."),
    ("matched", "match"): ({"matched": MATCHED}, "40 pairs of participants"),
    ("matched", "failed match"): ({"matched": MATCHED | {"failed": True}}, "match has failed"),
    ("matched", "undecided match"): ({}, "Cannot be decided"),
    ("regressed", "regressed"): (
        {"regressed": SCORE | {"variables": ["sfreq"]}},
        "inside the folds: sampling rate.",
    ),
}


@pytest.mark.parametrize(("part", "condition"), EXAMPLES)
def test_a_sentence_is_printed_under_its_condition(part, condition):
    known, words = EXAMPLES[part, condition]
    assert any(words in line for line in say(make(**known), part))


@pytest.mark.parametrize(("part", "condition"), EXAMPLES)
def test_and_not_without_it(part, condition):
    words = EXAMPLES[part, condition][1]
    others = [known for key, (known, _) in EXAMPLES.items() if key != (part, condition)]
    assert not all(any(words in line for line in say(make(**known), part)) for known in others)


def test_every_sentence_has_an_example_a_condition_and_its_values():
    audit = make(**NOTHING)
    conditions, values = _conditions(audit), _values(audit)
    of_each = {"variable", "levels", "mistake", "auc", "correct", "header", "number", "who_has_it"}
    of_each |= {"pair", "p", "fact"}
    assert {(part, name) for part, named in SENTENCES.items() for name in named} == set(EXAMPLES)
    for sentences in SENTENCES.values():
        for condition, text in sentences.items():
            names = {name for _, name, _, _ in Formatter().parse(text) if name}
            assert condition in conditions
            assert names <= values.keys() | of_each


def test_an_audit_of_a_score_names_the_score_and_no_groups():
    known = {"classes": [], "n_subjects": [41], "score": "BDI", "matched": {}, "strata": {}}
    for (part, condition), (given, _) in EXAMPLES.items():
        if part == "leading" or {"match", "strata"} & set(condition.split()):
            continue
        audit = replace(make(**given), **known)
        for line in [*say_audit(audit), audit.verdict["title"]]:
            assert not any(word in line for word in ("HC", "groups", "diagnosis", "AUC", "{"))
    audit = replace(make(**RED), **known)
    assert audit.verdict["verdict"].startswith("Sampling rate is associated with BDI, and the")
    assert "Sampling rate, higher with higher BDI: concordance 0.80" in audit.summary().replace(
        "sampling", "Sampling"
    )


def test_every_combination_of_answers_has_one_level():
    reached = set()
    for combination in itertools.product(*ANSWERS.values()):
        answers = dict(zip(ANSWERS, combination, strict=True))
        level, why = judge(answers)
        assert why in TITLES
        reached.add(why)
        acquisition, who = answers["acquisition"] == "found", answers["participants"] == "found"
        separates = answers["eeg"] == "separates"
        explained = answers["carried"] == "yes" or answers["coincide"] == "yes"
        assert (level == "red") == (acquisition and separates and explained)
        assert (level in ("red", "amber")) == (acquisition or who)
        if level == "green":
            assert answers["power"] == "enough"
            assert answers["described"] == "yes"
    assert reached == {why for *_, why in LEVELS}


def test_levels_name_only_known_questions_and_answers():
    for answers, level, _ in LEVELS:
        assert level in ("red", "amber", "green", "grey")
        assert all(answer in ANSWERS[question] for question, answer in answers.items())


def test_facts_and_pairs_of_a_family_are_found_up_to_its_level():
    rows = [
        {"variable": "sfreq", "p_corrected": 0.025, "family": "acquisition"},
        {"variable": "drift", "p_corrected": 0.026, "family": "acquisition"},
        {"variable": "age", "p_corrected": 0.001, "family": "participants"},
    ]
    tests = {"facts": rows, "pairs": PAIR}
    assert found_units(tests) == [["sfreq"], ["age"], ["sfreq", "duration"]]
    assert found_units(tests, "participants") == [["age"]]


def test_what_was_missed_is_held_against_the_eeg_where_it_separates():
    tests = {"critical_p": {"acquisition": 0.001, "participants": 0.004}}
    tests["facts"] = [{"family": "acquisition"}] * 8
    weak, strong = {"auc": 0.62, "p": 0.01}, {"auc": 0.95, "p": 0.001}
    unclear = {"auc": 0.62, "p": 0.02}
    # Groups 1.19 standard deviations apart (AUC 0.80); three quarters of the variance are error.
    rng = np.random.default_rng(0)
    groups = [rng.normal(shift, 1, 2000) for shift in (0.0, np.sqrt(2) * 0.841621)]
    noisy = [values + rng.normal(0, np.sqrt(3), 2000) for values in groups]
    expected = roc_auc_score(np.repeat([0, 1], 2000), np.concatenate(noisy))
    known = what_was_missed(tests, [40, 40], {"auc": 0.8, "p": 0.001})
    assert known["to_find"] == pytest.approx(expected, abs=0.02)
    assert what_was_missed(tests, [40, 40], weak)["to_find"] < 0.62
    assert what_was_missed(tests, [40, 40], strong)["to_find"] == 0.75
    missed = what_was_missed(tests, [40, 40], unclear)
    assert missed["to_find"] == 0.75
    assert missed["auc"] == pytest.approx(0.759, abs=0.001)
    assert 80 < missed["n"] < 95
    assert what_was_missed({"critical_p": {}, "facts": []}, [40, 40], weak) == {}


def test_what_was_missed_of_a_score_is_a_concordance():
    tests = {"critical_p": {"acquisition": 0.05}, "facts": [{"family": "acquisition"}]}
    tests["score"] = "BDI"
    # Cohen (1988), table 3.4.1: r = 0.30 needs 84 at 5 %; a tau of 2 / pi asin(0.30).
    missed = what_was_missed(tests, [84], {})
    assert missed["auc"] == pytest.approx(0.5 + np.arcsin(0.3) / np.pi, abs=0.003)
    assert missed["to_find"] == 0.68
    # Of a correlation of 0.6 a fact measured with a reliability of 0.25 keeps 0.3.
    eeg = {"auc": 0.5 + np.arcsin(0.6) / np.pi, "p": 0.001}
    assert what_was_missed(tests, [84], eeg)["to_find"] == pytest.approx(missed["auc"], abs=0.003)


def test_a_pair_that_is_found_is_not_called_none():
    said = make(**TWO, pairs=PAIR).summary()
    assert "associated with the diagnosis jointly" in said
    assert "2 facts tested none" not in said


def test_an_auc_below_one_half_is_no_evidence():
    below = {"auc": 0.2, "low": 0.1, "high": 0.3}
    said = make(matched=MATCHED | below, regressed=below | {"variables": ["sfreq"]}).summary()
    assert said.count("not shown to be above 0.5") == 2


def test_levels_of_texts_and_both_extremes_have_their_words():
    assert (
        "sampling rate (500), more often in MDD"
        in make(variables=facts("sfreq", level="500")).summary()
    )
    assert (
        "farther from the median in MDD"
        in make(variables=facts("sfreq", shape="extremes")).summary()
    )
    assert ", and 2 more." in make(variables=facts(*(f"gaps: {c}" for c in "abcde"))).summary()


def test_the_verdict_that_is_kept_has_level_title_and_reason():
    verdict = make(**RED).verdict
    assert verdict["level"] == "red"
    assert verdict["title"] == "The EEG's prediction carries how participants were recorded"
    assert verdict["verdict"].startswith("Sampling rate differs")


@pytest.mark.parametrize(
    ("p_holm", "missed", "expected"),
    [
        (0.05, {}, ("yes", "few")),
        (0.06, {"auc": 0.75, "to_find": 0.75}, ("not shown", "enough")),
        (None, {"auc": 0.76, "to_find": 0.75}, ("untestable", "few")),
        (0.06, {"auc": 0.7, "to_find": 0.75}, ("not shown", "enough")),
    ],
)
def test_a_fact_is_carried_at_5_percent_and_power_is_enough_at_the_limit(p_holm, missed, expected):
    tests = {"facts": [], "pairs": [], "coincide": 0.9, "described": True}
    carried = [{"family": "acquisition", "p_holm": p_holm}]
    answers = answers_of(tests, {"auc": 0.7, "p": 0.01}, carried, missed)
    assert (answers["carried"], answers["power"]) == expected
    assert (answers["eeg"], answers["coincide"], answers["described"]) == (
        "separates",
        "yes",
        "yes",
    )
    assert answers_of({"facts": [], "pairs": []}, {}, [], {})["described"] == "no"
    others = answers_of(tests | {"coincide": 0.89}, {"auc": 0.7, "p": 0.011}, carried, missed)
    assert (others["eeg"], others["coincide"]) == ("not shown", "no")
    of_score = answers_of(tests | {"coincide": 0.82, "score": "bdi"}, {}, carried, missed)
    assert (of_score["eeg"], of_score["coincide"]) == ("not scored", "yes")
