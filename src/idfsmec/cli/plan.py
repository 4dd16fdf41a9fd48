"""``idfsmec plan``: how many participants a study needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from idfsmec.cli.app import command
from idfsmec.cli.console import say, say_next, show_frame
from idfsmec.cli.options import AnyPath

if TYPE_CHECKING:
    from idfsmec.evaluation import StudyPlan


@command(
    auc="AUC that is expected of the model.",
    share="Share of patients among the participants.",
    facts="Number of facts of acquisition that the audit tests.",
    comparisons="Number of methods that one method is compared with (Holm's correction).",
    features="Number of columns of the table; 342 are 18 features of 19 channels.",
    k="Number of features to select.",
)
def plan(
    out: AnyPath = Path("plan"),
    auc: float = 0.75,
    share: float = 0.5,
    facts: int = 12,
    comparisons: int = 1,
    features: int = 342,
    k: int = 20,
    force: bool = False,
) -> StudyPlan:
    """Say how many participants a study needs, before anything is recorded.

    For example::

        idfsmec plan --auc 0.75 --facts 12 --share 0.5
        idfsmec plan --comparisons 13 --features 114 --k 10

    For a confidence interval of a given width, a difference between two methods,
    an audit that finds a fact, a validation, and stable features. Writes plan.csv,
    plan_by_participants.csv, plan.svg and plan.png into OUT.
    """
    from idfsmec.evaluation import StudyPlan
    from idfsmec.report.plan import describe_plan, plan_table, write_plan

    study = StudyPlan(auc, share, facts, comparisons, features, k)
    path = write_plan(study, out, overwrite=force)
    title = f"Participants needed, {100 * share:g} % of them patients"
    show_frame(title, plan_table(study))
    for sentence in describe_plan(study):
        say(sentence)
    say("table:", path)
    say_next("features FOLDER")
    return study
