from .classifier import IDFSMECClassifier
from .harmonizer import SiteHarmonizer
from .imputer import ChannelImputer
from .model import Model, fit_model
from .model_files import TRUSTED_TYPES, load_model, save_model
from .people import PersonPrediction, Predictions, extract_people, predict_people
from .regressor import IDFSMECRegressor

__all__ = [
    "ChannelImputer",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "Model",
    "PersonPrediction",
    "Predictions",
    "SiteHarmonizer",
    "TRUSTED_TYPES",
    "extract_people",
    "fit_model",
    "load_model",
    "predict_people",
    "save_model",
]
