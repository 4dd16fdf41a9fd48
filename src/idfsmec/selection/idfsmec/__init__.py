"""IDFS-MEC: the selector, its path over settings, its search by inner folds."""

from idfsmec.selection.idfsmec.estimator import IDFSMEC
from idfsmec.selection.idfsmec.path import IDFSPath, idfs_path
from idfsmec.selection.idfsmec.search import IDFSMECCV

__all__ = ["IDFSMEC", "IDFSMECCV", "IDFSPath", "idfs_path"]
