"""Parts of an audit as units of work: each is kept in a store, done once, on any worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from idfsmec.evaluation.auditing.decisions import (
    N_FEATURES,
    compare_folds_by,
    eeg_decisions,
    regress_out,
    sample_scores,
    select_before,
    shuffle_labels,
)
from idfsmec.evaluation.auditing.leaks import repeated_rows, two_names
from idfsmec.evaluation.auditing.people import People, folds_of
from idfsmec.evaluation.auditing.single import judge_alone, leading_decisions
from idfsmec.evaluation.auditing.suspects import suspects
from idfsmec.evaluation.auditing.together import (
    boosting_decisions,
    judge_together,
    logistic_decisions,
    propensity,
)
from idfsmec.evaluation.auditing.variables import Variables
from idfsmec.evaluation.method import Method
from idfsmec.evaluation.protocol import Folds, Protocol
from idfsmec.evaluation.statistics import holm
from idfsmec.evaluation.tables import TableArrays
from idfsmec.evaluation.unit_result import UnitResult
from idfsmec.evaluation.units import Unit, unit_key


@dataclass(frozen=True)
class AuditUnit(Unit):
    """One part of the audit of one table."""

    part: str
    variables: Variables = field(repr=False)
    n_splits: int
    seed: int
    folds: Folds = "subject"

    def coordinates(self) -> dict[str, Any]:
        """Table, method and part."""
        return {"table": self.table, "method": self.method.name, "part": self.part}

    def compute(self, table: TableArrays) -> UnitResult:
        """Do the part; where there are no folds by person, there is nothing to hold out."""
        try:
            return UnitResult(found=PARTS[self.part](_Work(self, table)))
        except (ValueError, ArithmeticError) as error:  # data that cannot be ranked
            return UnitResult(found={"reason": str(error)})


class _Work:
    """What all parts share: people, folds, the method as it is by default."""

    def __init__(self, unit: AuditUnit, table: TableArrays) -> None:
        self.unit, self.table = unit, table
        self.people = People.of(table.y, table.subjects, table.n_classes)
        self.folds = folds_of(table, unit.n_splits, unit.seed, unit.folds)
        self.method, self.seed = unit.method, unit.seed
        self.fold_of = self.people.fold_of(self.folds)
        self.protocol = Protocol(
            folds=unit.folds, n_splits=max(len(self.folds), 2), ks=(N_FEATURES,)
        )

    @property
    def shared(self) -> tuple[Method, TableArrays, Protocol, int]:
        return self.method, self.table, self.protocol, self.seed

    def tested(self) -> dict[str, Any]:
        """Tests of each variable, and of all together, corrected for their number."""
        variables, people = self.unit.variables, self.people
        alone = judge_alone(variables, people, seed=self.seed)
        together: dict[str, Any] = {}
        if self.folds and alone:
            together["p"] = judge_together(variables.values, people, self.fold_of, seed=self.seed)
        corrected = holm([one["p"] for one in (*alone, together) if one]).tolist()
        for one, value in zip((*alone, together), corrected, strict=False):
            one["p_holm"] = value
        return {"alone": alone, "together": together}

    def recording(self) -> dict[str, Any]:
        """What the recording alone tells: each variable, and all of them together."""
        variables, people = self.unit.variables, self.people
        found = self.tested()
        if found["together"]:
            shared = (variables.values, people.y, self.fold_of, people.n_classes)
            found["together"] |= {
                "logistic": logistic_decisions(*shared).tolist(),
                "boosting": boosting_decisions(*shared).tolist(),
            }
        names = suspects(found)
        alike = variables.columns_of(names), people.y, people.n_classes
        return found | {
            "propensity": propensity(*alike).tolist() if names else [],
            "leader": leading_decisions(variables, people, found["alone"]),
            "y": people.y.tolist(),
            "classes": [str(name) for name in self.table.classes],
            "n_splits": len(self.folds),
            "folds": self.unit.folds,
            "described": variables.described,
            "unused": list(variables.unused),
        }

    def eeg(self) -> dict[str, Any]:
        """What the EEG tells of people held out."""
        if not self.folds:
            return {}
        decisions = eeg_decisions(*self.shared)
        return {
            "decisions": self.people.mean(decisions).tolist(),
            "scores": sample_scores(decisions, self.table),
        }

    def regressed(self) -> dict[str, Any]:
        """What the EEG tells once the variables that go with the label are taken out."""
        names = suspects(self.tested()) if self.folds else []
        if not names:
            return {}
        nuisance = self.unit.variables.columns_of(names)
        method, table, protocol, seed = self.shared
        decisions = regress_out(method, table, self.people, protocol, seed, nuisance)
        return {"decisions": self.people.mean(decisions).tolist(), "variables": names}

    def by_sample(self) -> dict[str, Any]:
        """What folds by sample would claim."""
        if not self.folds or np.bincount(self.table.subjects).max() < 2:
            return {}
        return dict(compare_folds_by(*self.shared))

    def before(self) -> dict[str, Any]:
        """What choosing features before splitting would claim."""
        return dict(select_before(*self.shared)) if self.folds else {}

    def shuffled(self) -> dict[str, Any]:
        """What labels that mean nothing give."""
        if not self.folds:
            return {}
        method, table, protocol, seed = self.shared
        return shuffle_labels(method, table, self.people, protocol, seed)

    def names(self) -> dict[str, Any]:
        """People under two names, and rows that come twice."""
        found = {"two_names": two_names(self.table), "repeated": repeated_rows(self.table)}
        known = self.unit.variables.subjects
        for one in found.values():
            if "pairs" in one:
                one["pairs"] = [[known[a], known[b], *rest] for a, b, *rest in one["pairs"]]
        return found


#: What an audit consists of, by name.
PARTS: dict[str, Callable[[_Work], dict[str, Any]]] = {
    "recording": _Work.recording,
    "eeg": _Work.eeg,
    "regressed": _Work.regressed,
    "by_sample": _Work.by_sample,
    "before": _Work.before,
    "shuffled": _Work.shuffled,
    "names": _Work.names,
}


def plan_audit(
    table: TableArrays,
    variables: Variables,
    method: Method,
    *,
    n_splits: int,
    seed: int,
    folds: Folds = "subject",
    parts: Sequence[str] = tuple(PARTS),
) -> list[AuditUnit]:
    """List the units of a table's audit; the longest comes first, so that nobody waits for it."""
    described, units = method.describe(), []
    for part in sorted(parts, key=lambda one: one != "shuffled"):
        key = unit_key(
            table,
            described,
            kind="audit",
            part=part,
            variables=variables.digest,
            seed=seed,
            # By site their number is that of the sites.
            **({"folds": folds} if folds == "site" else {"n_splits": n_splits}),
        )
        own = (key, table.name, table.digest, method.resolve())
        units.append(AuditUnit(*own, part, variables, n_splits, seed, folds))
    return units
