"""IDFSMECRegressor keeps scikit-learn's contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.prediction import IDFSMECRegressor


@parametrize_with_checks([IDFSMECRegressor()])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
