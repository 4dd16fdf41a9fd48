"""
A study in Python, from files to pages
======================================

What the commands do, step by step, with a simulated study. Files go to a temporary folder.
"""

# %%
# Write recordings and a manifest, find them again, and look for files that occur twice.
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from idfsmec.audit import add_audit, audits_of
from idfsmec.evaluation import accuracy, cost, imputation, resampling, train_model
from idfsmec.features import extract_to_file
from idfsmec.missing import simulate_missing_mask
from idfsmec.paper import ablation, sensitivity
from idfsmec.prediction import predict_subjects, save_model
from idfsmec.recordings import check_duplicates, find_duplicates, find_recordings, simulate_cohort
from idfsmec.report import (
    plot_effects,
    plot_paired_differences,
    use_style,
    write_audit_page,
    write_model_card,
    write_report,
    write_reporting_checklist,
    write_subject_pages,
)

use_style()
temporary = TemporaryDirectory()
folder = Path(temporary.name)
lines = ["path,subject,label"]
for recording in simulate_cohort(
    16, 19, duration=30, effect_size=2.0, detached=0.1, random_state=0
).recordings:
    name = f"{recording.subject}_raw.fif"
    recording.load().save(folder / name, verbose="error")
    lines.append(f"{name},{recording.subject},{recording.label}")
(folder / "study.csv").write_text("\n".join(lines))
recordings = check_duplicates(find_recordings(folder / "study.csv"))
print(len(recordings), "recordings,", len(find_duplicates(recordings)), "of them twice")

# %%
# Compute the table. A run that was interrupted continues.
extraction = extract_to_file(recordings, folder / "table.parquet")
table = extraction.table
print(extraction.summary())

# %%
# Which channels would be left if 30 % more came off, together with their neighbours in time?
mask = simulate_missing_mask(
    table.observed.to_numpy(), 0.3, "burst", 0, recordings=table.subjects.to_numpy()
)
print(f"observed: {table.observed.to_numpy().mean():.0%}, then {mask.mean():.0%}")

# %%
# Compare methods and imputers, time them, take the method apart, and resample participants. All
# results are kept in one folder.
out = folder / "results"
few = {"rates": [0.0, 0.3], "n_splits": 4, "ks": [5], "svm_costs": [0.1], "n_inner_splits": 2}
one_rate = {**few, "rates": [0.3]}
accuracy(table, out, methods=["IDFS-MEC", "ANOVA F", "random"], protocol=few, n_jobs=1)
imputation(table, out, methods=["ANOVA F"], protocol=one_rate, n_jobs=1)
cost(table, out, methods=["IDFS-MEC", "ANOVA F"], protocol=one_rate)
ablation(table, out, protocol=one_rate, n_jobs=1)
sensitivity(table, out, lams=(0.1, 1.0), gammas=(2.0, 4.0), protocol=one_rate, n_jobs=1)
results = resampling(table, out, n_resamples=10, n_jobs=1)
results.mean_scores().round(2)

# %%
# Differences to the proposed method in the same folds, and the effects of the leading features.
plot_paired_differences(results.scores[results.scores["experiment"] == "accuracy"])
plt.show()
plot_effects(results.ranking.head(10))
plt.show()

# %%
# Could the difference come from the recording? Write the pages for readers and reviewers.
results = add_audit(table, out, n_jobs=1)
(audit,) = audits_of(results).values()
print(audit.summary())
write_audit_page(audit, folder / "audit.html")
write_reporting_checklist(folder / "reporting.md", results)
print(write_report(out).name)

# %%
# A model, its card and a page about each participant.
model = train_model(table, n_repeats=1)
write_model_card(model, save_model(model, folder / "model.skops"))
pages = write_subject_pages(model, predict_subjects(model, table), folder / "pages")
print(len(pages), "pages")
temporary.cleanup()
