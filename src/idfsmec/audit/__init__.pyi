from .audit_tasks import add_audit, audit
from .variables import recording_variables
from .verdict import Audit

__all__ = ["Audit", "add_audit", "audit", "recording_variables"]
