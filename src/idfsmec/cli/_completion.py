"""What the Tab key offers: methods and their parts, patterns, features, data sets, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def after_commas(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Complete the last name of a list with commas, each name once.

    Examples
    --------
    >>> complete = after_commas(lambda: ["mRMR", "CMIM", "random"])
    >>> complete("CMIM,m"), complete("")
    (['CMIM,mRMR'], ['mRMR', 'CMIM', 'random'])
    """

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = {part.strip() for part in before.split(",")}
        return [
            f"{before}{comma}{name}"
            for name in names()
            if name.startswith(last) and name not in given
        ]

    return complete


def one_of(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Complete a single name."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def sources(incomplete: str) -> list[str]:
    """Complete the names of data sets; the shell itself offers files where none fits."""
    return one_of(data_sets)(incomplete) if incomplete else []


def data_sets() -> list[str]:
    """Data sets known by name."""
    from idfsmec.recordings import DATA_SETS

    return list(DATA_SETS)


def methods() -> list[str]:
    """Methods and sanity lines that can run here."""
    from idfsmec.prediction.methods import find_methods

    return [one.name for one in find_methods()]


def imputers() -> list[str]:
    """What can fill gaps."""
    from idfsmec.prediction.methods import IMPUTERS

    return list(IMPUTERS)


def classifiers() -> list[str]:
    """What can be scored on selected features."""
    from idfsmec.prediction.methods import CLASSIFIERS

    return list(CLASSIFIERS)


def patterns() -> list[str]:
    """Patterns of gaps."""
    from idfsmec.missing import PATTERNS

    return list(PATTERNS)


def feature_names() -> list[str]:
    """Features of the registry."""
    from idfsmec.features import FEATURES

    return list(FEATURES)


def label_rules() -> list[str]:
    """Rules for the labels of PRED+CT d003."""
    from idfsmec.recordings.datasets.pred import LABEL_RULES

    return list(LABEL_RULES)
