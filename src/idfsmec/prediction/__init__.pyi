from .harmonizer import SiteHarmonizer
from .imputer import ChannelImputer
from .linear import IDFSMECClassifier, IDFSMECRegressor
from .methods import (
    CLASSIFIERS,
    IMPUTERS,
    METHODS,
    Classifier,
    Imputer,
    Method,
    find_methods,
    register_classifier,
    register_imputer,
    register_method,
)
from .model import (
    TRUSTED_TYPES,
    Model,
    Predictions,
    SubjectPrediction,
    extract_subjects,
    fit_model,
    load_model,
    predict_subjects,
    save_model,
)

__all__ = [
    "CLASSIFIERS",
    "IMPUTERS",
    "METHODS",
    "ChannelImputer",
    "Classifier",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "Imputer",
    "Method",
    "Model",
    "Predictions",
    "SiteHarmonizer",
    "SubjectPrediction",
    "TRUSTED_TYPES",
    "extract_subjects",
    "find_methods",
    "fit_model",
    "load_model",
    "predict_subjects",
    "register_classifier",
    "register_imputer",
    "register_method",
    "save_model",
]
