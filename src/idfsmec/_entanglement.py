"""Moved to idfsmec.metrics; here until all imports are."""

from idfsmec.metrics import CONFOUNDED as ENTANGLED
from idfsmec.metrics import count_by_site
from idfsmec.metrics import describe_confounding as say_entanglement
from idfsmec.metrics import site_confounding as entanglement_of_counts

__all__ = ["ENTANGLED", "entanglement", "entanglement_of_counts", "say_entanglement"]


def entanglement(sites, y):
    """Return how much of the difference between classes lies between sites."""
    return entanglement_of_counts(count_by_site(sites, y))
