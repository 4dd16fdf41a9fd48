"""Moved to idfsmec._validation; here until all imports are."""

from idfsmec._validation import assign_folds, folds_of_digests, groups_of, warn_without_groups

__all__ = ["digest_folds", "groups_of", "name_folds", "warn_of_split_people"]

warn_of_split_people = warn_without_groups


def name_folds(names, n_folds, n_deals=1):
    """Assign subjects to folds."""
    return assign_folds(names, n_folds, n_deals)


def digest_folds(digests, n_folds, n_deals=1):
    """Assign subjects to folds."""
    return folds_of_digests(digests, n_folds, n_deals)
