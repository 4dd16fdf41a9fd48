from .audit_tasks import add_audit, audit
from .variables import recording_variables
from .verdict import Audit, audits_of

__all__ = ["Audit", "add_audit", "audit", "audits_of", "recording_variables"]
