"""Audit of a table: whether groups differ in who or how was recorded, and leaks.

Read in this order: ``variables`` (what is known of each subject), ``association`` (the tests, and
what they could have missed), ``confounding`` (facts against the target, and the EEG adjusted for
them), ``audit_tasks`` (how an audit is run, and what mistakes in a protocol would add to the EEG's
score), ``levels`` (the answers and the level), ``verdict`` (all of it put together) and
``sentences``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
