"""Public data sets as they were released: MODMA and PRED+CT d003."""

from idfsmec.recordings.releases.modma import read_modma3, read_modma128
from idfsmec.recordings.releases.pred import read_pred_d003

__all__ = ["read_modma3", "read_modma128", "read_pred_d003"]
