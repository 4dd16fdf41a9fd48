from .channels import (
    plot_channel_weights,
    plot_effects,
    plot_missing_map,
    plot_score_heatmap,
    plot_selection_frequency,
)
from .clinic import plot_calibration
from .documents import (
    write_audit_page,
    write_model_card,
    write_reporting_checklist,
    write_subject_pages,
)
from .multiverse import plot_specification_curve, write_multiverse
from .page import summarise, write_report
from .plan import plot_plan, write_plan
from .scores import (
    plot_accuracy_by_rate,
    plot_electrode_curve,
    plot_paired_differences,
    plot_participant_curve,
)
from .style import use_style
from .text import describe_protocol
from .transfer import plot_transfer
from .validation import plot_validation, write_validation

__all__ = [
    "write_report",
    "summarise",
    "write_audit_page",
    "write_reporting_checklist",
    "write_model_card",
    "write_subject_pages",
    "plot_channel_weights",
    "plot_score_heatmap",
    "plot_effects",
    "plot_missing_map",
    "plot_accuracy_by_rate",
    "plot_paired_differences",
    "plot_selection_frequency",
    "plot_electrode_curve",
    "plot_participant_curve",
    "plot_calibration",
    "plot_transfer",
    "describe_protocol",
    "use_style",
    "plot_validation",
    "write_validation",
    "plot_specification_curve",
    "write_multiverse",
    "plot_plan",
    "write_plan",
]
