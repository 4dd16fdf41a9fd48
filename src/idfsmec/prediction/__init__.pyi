from .classifier import IDFSMECClassifier
from .harmonizer import SiteHarmonizer
from .imputer import ChannelImputer
from .model import TRUSTED_TYPES, Model, fit_model, load_model, save_model
from .regressor import IDFSMECRegressor
from .subjects import Predictions, SubjectPrediction, extract_subjects, predict_subjects

__all__ = [
    "ChannelImputer",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "Model",
    "Predictions",
    "SiteHarmonizer",
    "SubjectPrediction",
    "TRUSTED_TYPES",
    "extract_subjects",
    "fit_model",
    "load_model",
    "predict_subjects",
    "save_model",
]
