"""Figures and pages from results; no results are computed here."""

from idfsmec.report.accuracy import plot_accuracy_by_k, plot_accuracy_by_rate
from idfsmec.report.channels import plot_channel_weights, plot_missing_map, plot_score_heatmap
from idfsmec.report.comparison import plot_critical_difference
from idfsmec.report.cost import plot_cost
from idfsmec.report.formatting import describe_protocol
from idfsmec.report.page import write_report
from idfsmec.report.settings import plot_ablation, plot_convergence, plot_sensitivity
from idfsmec.report.stability import plot_selection_frequency
from idfsmec.report.summary import summarise

__all__ = [
    "write_report",
    "summarise",
    "plot_channel_weights",
    "plot_score_heatmap",
    "plot_missing_map",
    "plot_accuracy_by_rate",
    "plot_accuracy_by_k",
    "plot_sensitivity",
    "plot_ablation",
    "plot_cost",
    "plot_critical_difference",
    "plot_convergence",
    "plot_selection_frequency",
    "describe_protocol",
]
