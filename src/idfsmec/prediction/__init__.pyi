from .adjuster import Adjuster
from .harmonizer import SiteHarmonizer
from .imputer import ChannelImputer, ChannelPCA
from .linear import IDFSMECClassifier, IDFSMECRegressor
from .methods import (
    CLASSIFIERS,
    IMPUTERS,
    METHODS,
    REGRESSORS,
    Method,
    register_classifier,
    register_imputer,
    register_method,
)
from .model import TRUSTED_TYPES, Model, fit_model, load_model, save_model
from .pipeline import HarmonizedClassifier, HarmonizedRegressor, TunedPipeline, TunedRegressor
from .search import IDFSMECCV
from .subjects import extract_subjects, find_training_subjects, predict_subjects

__all__ = [
    "CLASSIFIERS",
    "IMPUTERS",
    "METHODS",
    "Adjuster",
    "ChannelImputer",
    "ChannelPCA",
    "HarmonizedClassifier",
    "HarmonizedRegressor",
    "IDFSMECCV",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "Method",
    "REGRESSORS",
    "Model",
    "SiteHarmonizer",
    "TRUSTED_TYPES",
    "TunedPipeline",
    "TunedRegressor",
    "extract_subjects",
    "find_training_subjects",
    "fit_model",
    "load_model",
    "predict_subjects",
    "register_classifier",
    "register_imputer",
    "register_method",
    "save_model",
]
