from .accuracy import plot_accuracy_by_k, plot_accuracy_by_rate
from .audit_page import write_audit_page
from .channels import plot_channel_weights, plot_missing_map, plot_score_heatmap
from .comparison import plot_critical_difference
from .cost import plot_cost
from .derivative import add_to_derivative
from .differences import paired_differences, plot_paired_differences
from .effects import plot_effects
from .filling import plot_filling, plot_points_lost, points_lost
from .formatting import describe_protocol
from .models import plot_calibration, write_model_card
from .people import write_person_pages
from .settings import plot_ablation, plot_convergence, plot_sensitivity
from .sheet import write_reporting_sheet
from .stability import plot_selection_frequency
from .style import use_style
from .summary import summarise
from .writing import write_report

__all__ = [
    "write_report",
    "write_audit_page",
    "write_reporting_sheet",
    "add_to_derivative",
    "write_model_card",
    "write_person_pages",
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
    "plot_filling",
    "plot_points_lost",
    "points_lost",
    "plot_sensitivity",
    "plot_ablation",
    "plot_cost",
    "plot_critical_difference",
    "plot_convergence",
    "plot_selection_frequency",
    "describe_protocol",
    "use_style",
]
