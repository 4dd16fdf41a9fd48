"""Audit of a table: whether groups differ in who or how was recorded, and leaks.

Read in this order: ``association`` (the tests, and what they could have missed), ``confounding``
(the facts of each subject, and the EEG without them), ``audit_tasks`` (how an audit is run, and
what mistakes in a protocol would add to the EEG's score), ``verdict`` (all of it put together, and
in words).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
