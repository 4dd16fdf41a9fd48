from . import audit as audit
from . import cli as cli
from . import errors as errors
from . import evaluation as evaluation
from . import features as features
from . import federated as federated
from . import metrics as metrics
from . import missing as missing
from . import multiverse as multiverse
from . import paper as paper
from . import prediction as prediction
from . import progress as progress
from . import recordings as recordings
from . import report as report
from . import selection as selection
from . import solver as solver
from . import table as table
from ._version import __version__
from .federated import Summary, summarise
from .prediction import IDFSMECCV, ChannelImputer, IDFSMECClassifier, IDFSMECRegressor
from .selection import IDFSMEC, IDFSPath, StabilitySelector, idfs_path
from .table import FeatureTable

__all__ = [
    "IDFSMEC",
    "IDFSMECCV",
    "ChannelImputer",
    "FeatureTable",
    "Summary",
    "summarise",
    "IDFSMECClassifier",
    "IDFSMECRegressor",
    "IDFSPath",
    "StabilitySelector",
    "__version__",
    "idfs_path",
]
