"""IDFSMECClassifier keeps scikit-learn's contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.prediction import IDFSMECClassifier


@parametrize_with_checks([IDFSMECClassifier(), IDFSMECClassifier(C=1.0, power=0.0, lam=1.0)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
