"""IDFSMEC keeps scikit-learn's contract and works where a selector is used."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec import IDFSMEC


@parametrize_with_checks([IDFSMEC(), IDFSMEC(n_features_to_select=1, lam=0.01, gamma=1.5)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
