from .classifier import IDFSMECClassifier
from .regressor import IDFSMECRegressor

__all__ = [
    "IDFSMECClassifier",
    "IDFSMECRegressor",
]
