"""What was found about a table, beside the table in its BIDS derivative."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from idfsmec._files import neutralise
from idfsmec.errors import InputError
from idfsmec.evaluation import Results
from idfsmec.features.derivative import DESCRIPTION, write_json, write_tsv

_RANKING = {
    "rank": "1 is the best feature",
    "channel": "Electrode",
    "feature": "What was computed",
    "score": "Channel weight times feature weight",
    "channel_weight": "Weight of the channel; all sum to 1",
    "feature_weight": "Weight of the feature within its channel",
    "stability": "Share of folds that selected the feature",
    "method": "Method that ranked",
    "direction": "Group in which the feature is higher",
}


def add_to_derivative(folder: str | PathLike[str], results: Results, table: str) -> Path:
    """Add the audit and the ranking of a table to the derivative that holds the table.

    Parameters
    ----------
    folder : path-like
        Where :func:`idfsmec.features.write_derivative` has written it.
    results : Results
    table : str
        What the results call the table.

    Returns
    -------
    Path
        The folder, now with ``desc-idfsmec_audit.json``, ``desc-idfsmec_ranking.tsv`` and a
        sidecar that describes its columns, as far as the results have them.

    Raises
    ------
    InputError
        There is no derivative in the folder.
    """
    root = Path(folder)
    if not (root / DESCRIPTION).is_file():
        raise InputError(f"{root}: has no {DESCRIPTION}; write the table there first.")
    if table in results.audits:
        write_json(root / "desc-idfsmec_audit.json", results.audits[table].as_dict())
    if len(results.ranking):
        own = results.ranking[results.ranking["table"] == table].drop(columns="table")
        if len(own):
            write_tsv(root / "desc-idfsmec_ranking.tsv", neutralise(own))
            described = {
                str(name): {"Description": _RANKING.get(str(name), str(name).replace("_", " "))}
                for name in own.columns
            }
            write_json(root / "desc-idfsmec_ranking.json", described)
    return root
