"""Write the golden files from the revision that PYTHONPATH names.

    PYTHONPATH=/path/of/144077f/src:. OMP_NUM_THREADS=1 python tests/golden/record.py [FILE ...]

With names of files (``grouped``) only these are written.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.golden import cases
from tests.golden import test_commands as _commands  # noqa: F401
from tests.golden import test_estimators as _estimators  # noqa: F401
from tests.golden import test_signals as _signals  # noqa: F401
from tests.golden import test_tables as _tables  # noqa: F401


def main(files):
    with tempfile.TemporaryDirectory() as folder:
        for file in files or sorted(cases.CASES):
            outcome = {}
            for name in cases.CASES[file]:
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    outcome[name] = cases.outcome(file, name, Path(folder))
                print(f"{file} {name}: {time.process_time() - start:.2f} s", flush=True)
            (cases.HERE / f"{file}.json").write_text(_text(outcome))


def _text(outcome):
    """JSON with a line for every entry of the second level."""
    parts = []
    for name, value in outcome.items():
        if isinstance(value, dict):
            lines = [f"  {json.dumps(key)}: {json.dumps(v)}" for key, v in value.items()]
            body = "{\n" + ",\n".join(lines) + "\n }"
        else:
            body = json.dumps(value)
        parts.append(f" {json.dumps(name)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
