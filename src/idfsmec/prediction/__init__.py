"""Predict from incomplete samples: a classifier and a regressor that need no filling."""

from idfsmec.prediction.classifier import IDFSMECClassifier
from idfsmec.prediction.regressor import IDFSMECRegressor

__all__ = ["IDFSMECClassifier", "IDFSMECRegressor"]
