"""Settings come back from tables and from TOML files, and wrong ones are refused by name."""

import re
import tomllib

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from idfsmec.errors import ExistingFileError, InputError
from idfsmec.features import Feature, FeatureSettings

OTHERS = FeatureSettings(
    features=["hoc", "ap", "c0"],
    bands={"mu": (8, 12), "slow wave": (0.5, 4)},
    hoc_orders=3,
    resample=None,
    band_pass=None,
    line_freq="off",
    channels=["Fp1", 'a "quoted" name', "前額"],
    reference="average",
    bad_channels="interpolate",
    autoreject_interpolated="missing",
    epoch=4,
    overlap=1.5,
    detect=False,
    typical_amplitude=2e-5,
    limits={"pop": np.inf, "correlation": 0},
)


@pytest.mark.parametrize("given", [FeatureSettings(), OTHERS], ids=["default", "others"])
def test_settings_come_back_from_a_file(tmp_path, given):
    path = given.to_toml(tmp_path / "settings.toml")
    again = FeatureSettings.from_toml(path)
    assert again == given
    assert again.digest() == given.digest()


def test_a_file_names_every_setting_with_the_values_that_are_allowed(tmp_path):
    text = FeatureSettings().to_toml(tmp_path / "settings.toml").read_text()
    assert set(tomllib.loads(text)) == {*FeatureSettings.__dataclass_fields__, "choices"}
    assert '# a sampling rate in Hz above 0, at most 100000, or "off"\nresample = 250.0\n' in text
    assert "[bands]\ndelta = [1.0, 4.0]\n" in text
    assert "pop = 60.0\n" in text


def test_what_a_file_leaves_out_keeps_its_default(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('epoch = 4\nband_pass = "off"\nfeatures = "log"\n[limits]\npop = inf\n')
    settings = FeatureSettings.from_toml(path)
    expected = FeatureSettings(epoch=4, band_pass=None, features="log", limits={"pop": np.inf})
    assert settings == expected
    path.write_text("")
    assert FeatureSettings.from_toml(path) == FeatureSettings()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("epochs = 4", "there is no setting 'epochs'; there are: features, hoc_orders, c0_ratio"),
        ("epoch = -1", "epoch = -1 is not the length of an epoch: seconds above 0"),
        ("epoch = true", "epoch = true is not"),
        ("overlap = 10", "The overlap must be at least 0 and less than the epoch of 10 s"),
        ("hoc_orders = 1.5", "hoc_orders = 1.5 is not .*a whole number, 1 or more"),
        ("epoch = 1e9", "epoch = 1000000000.0 is not .*: seconds above 0, at most 3600"),
        ("resample = 0", "resample = 0 is not a sampling rate in Hz above 0, at most 100000"),
        ("band_pass = [1]", r"band_pass = \[1\] is not a band-pass of two edges in Hz"),
        ("band_pass = [1, 200]", "The band-pass needs 0 < lower < upper < 125 Hz"),
        ('line_freq = "on"', 'line_freq = "on" is not .*"auto", a number in Hz, or "off"'),
        ('channels = "some"', 'channels = "some" is not .*"scalp", "all", or a list of names'),
        ('reference = "Cz"', 'reference = "Cz" is not a reference: "keep" or "average"'),
        ("detect = 1", "detect = 1 is not .*true or false"),
        ('features = ["kurtosis"]', "no feature 'kurtosis'; there are: "),
        ("features = 3", r"features = 3 is not a set of features \(paper, log, extended\)"),
        ("channels = []", "is not a choice of channels"),
        ("bands = { mu = 8 }", "bands = {mu = 8} is not a table of bands"),
        ("[bands]\nmu = [12, 8]", "Band 'mu' must have 0 <= lower < upper edge"),
        ("[limits]\npops = 3", "There is no limit pops; there are: flat,"),
        ("[limits]\npop = -3", "The limit pop = -3 is no number of at least 0"),
        ("epoch = ", "is not a TOML file"),
    ],
)
def test_what_is_wrong_in_a_file_is_refused_with_file_key_and_what_is_allowed(
    tmp_path, line, message
):
    path = tmp_path / "settings.toml"
    path.write_text(line)
    with pytest.raises(InputError, match=f"{re.escape(str(path))}: .*{message}"):
        FeatureSettings.from_toml(path)


def test_files_that_cannot_be_read_or_should_not_be_replaced_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"absent\.toml: cannot be read \(No such file"):
        FeatureSettings.from_toml(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.toml: is not a TOML file"):
        FeatureSettings.from_toml(tmp_path / "binary.toml")
    path = tmp_path / "settings.toml"
    path.write_text("epoch = 4")
    with pytest.raises(ExistingFileError):
        FeatureSettings().to_toml(path)
    assert path.read_text() == "epoch = 4"
    FeatureSettings().to_toml(path, overwrite=True)
    assert FeatureSettings.from_toml(path) == FeatureSettings()


def test_a_feature_that_is_not_registered_has_no_name_for_a_file(tmp_path):
    own = Feature("own", lambda signal: signal.mean)
    with pytest.raises(InputError, match="no feature 'own'"):
        FeatureSettings(features=[own]).to_toml(tmp_path / "settings.toml")
    assert not (tmp_path / "settings.toml").exists()


@hypothesis_settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    names=st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=3),
    epoch=st.floats(1e-3, 3600),
    bands=st.dictionaries(
        st.text("aB2 .\"'\\é\n-", min_size=1).filter(lambda name: name == name.strip()),
        st.tuples(st.floats(0, 10), st.floats(11, 1e4)),
        max_size=3,
    ),
)
def test_any_names_and_numbers_come_back_from_a_file(tmp_path, names, epoch, bands):
    given = FeatureSettings(channels=names, epoch=epoch, bands=bands)
    path = given.to_toml(tmp_path / "settings.toml", overwrite=True)
    assert FeatureSettings.from_toml(path) == given


def test_settings_come_back_from_a_table_whatever_they_are():
    again = FeatureSettings.from_dict(OTHERS.as_dict(), OTHERS.columns)
    assert again == OTHERS
    assert again.digest() == OTHERS.digest()
