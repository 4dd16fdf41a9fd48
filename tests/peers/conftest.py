"""Programs of others, which take seconds to import: not even collected without long tests."""


def pytest_ignore_collect(config):
    return True if "not long" in config.getoption("markexpr") else None
