import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """One folder for all files: cases that look at the same run compute it once."""
    return tmp_path_factory.mktemp("golden")
