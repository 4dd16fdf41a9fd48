"""Numbers are written as people write them."""

import pytest

from idfsmec.report.text import seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0004, "0.4 ms"),
        (0.0123, "12.3 ms"),
        (0.0996, "99.6 ms"),
        (0.09999, "100 ms"),
        (0.1, "0.1 s"),
        (12.34, "12.3 s"),
        (999.4, "999 s"),
        (999.6, "1 000 s"),
        (12345.0, "12 345 s"),
    ],
)
def test_seconds_have_three_digits_and_no_exponent(value, text):
    assert seconds(value) == text
