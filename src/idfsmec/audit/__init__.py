"""Audit of a table: whether acquisition separates the groups as well as the EEG does, and leaks.

Read in this order: ``confounding`` (how subjects were recorded, against the diagnosis, and the EEG
without it), ``audit_tasks`` (how an audit is run, and what mistakes in a protocol would add to the
EEG's score), ``verdict`` (all of it put together, and in words).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
