from .accuracy import plot_accuracy_by_k, plot_accuracy_by_rate
from .audit_page import write_audit_page
from .cards import plot_calibration, write_model_card, write_subject_pages
from .channels import (
    plot_channel_weights,
    plot_effects,
    plot_missing_map,
    plot_score_heatmap,
)
from .comparison import paired_differences, plot_critical_difference, plot_paired_differences
from .documents import add_to_derivative, write_reporting_checklist
from .imputation import imputation_loss, plot_imputation, plot_imputation_loss
from .method import plot_ablation, plot_convergence, plot_cost, plot_sensitivity
from .page import summarise, write_report
from .stability import plot_selection_frequency
from .style import use_style
from .text import describe_protocol

__all__ = [
    "write_report",
    "write_audit_page",
    "write_reporting_checklist",
    "add_to_derivative",
    "write_model_card",
    "write_subject_pages",
    "plot_calibration",
    "summarise",
    "plot_channel_weights",
    "plot_score_heatmap",
    "plot_missing_map",
    "plot_accuracy_by_rate",
    "plot_accuracy_by_k",
    "plot_paired_differences",
    "paired_differences",
    "plot_effects",
    "plot_imputation",
    "plot_imputation_loss",
    "imputation_loss",
    "plot_sensitivity",
    "plot_ablation",
    "plot_cost",
    "plot_critical_difference",
    "plot_convergence",
    "plot_selection_frequency",
    "describe_protocol",
    "use_style",
]
