from .classifier import IDFSMECClassifier
from .completion import ChannelCompleter
from .regressor import IDFSMECRegressor

__all__ = [
    "ChannelCompleter",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
]
