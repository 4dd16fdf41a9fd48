import pytest

from idfsmec.evaluation.statistics import selection_matrix


def test_rankings_become_a_matrix_of_the_leading_features():
    matrix = selection_matrix([["a", "c", "b"], ["c", "b", "a"]], ["a", "b", "c"], k=2)
    assert matrix.tolist() == [[True, False, True], [False, True, True]]


def test_a_ranking_shorter_than_k_selects_what_it_has():
    assert selection_matrix([["a"]], ["a", "b"], k=5).tolist() == [[True, False]]


def test_an_unknown_feature_is_refused_and_named():
    with pytest.raises(ValueError, match="'z'"):
        selection_matrix([["z"]], ["a", "b"], k=1)
