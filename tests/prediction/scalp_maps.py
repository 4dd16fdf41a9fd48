"""Samples of smooth maps on the scalp with gaps, for whatever fills them."""

import numpy as np

from idfsmec.table.positions import channel_positions

NAMES = ["Fp1", "Fp2", "F3", "Fz", "F4", "C3", "Cz", "C4", "P3", "Pz", "P4", "O1", "O2"]


def smooth_maps():
    """Thirteen channels with two features each; smooth maps, a third of the channels missing."""
    rng = np.random.default_rng(0)
    positions = channel_positions(NAMES)
    channels = np.repeat(np.arange(13), 2)
    maps = rng.normal(size=(60, 3, 2))
    whole = np.einsum("vx,nxf->nvf", positions, maps) + 0.1 * rng.normal(size=(60, 13, 2))
    gone = rng.random((60, 13)) < 0.3
    X = np.where(gone[:, :, None], np.nan, whole).reshape(60, -1)
    return X, whole.reshape(60, -1), {"channels": channels}
