"""Audit of a table: whether acquisition separates the groups as well as the EEG does, and leaks.

Read in this order: ``variables`` (what is known of how each subject was recorded),
``confounding`` (these variables against the diagnosis, and the EEG without them), ``audit_tasks``
(how an audit is run, the EEG's score, and what mistakes in a protocol would add to it),
``verdict`` (all of it put together, and in words).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
