"""Every command and every option says what it is for, and every command shows an example."""

import inspect
import typing

import pytest
import typer
from typer.testing import CliRunner

from idfsmec import cli
from idfsmec.cli import app

COMMANDS = {info.name: info.callback for info in app.registered_commands}
runner = CliRunner()


def test_the_commands_are_those_of_the_contract():
    several = {
        "demo",
        "features",
        "select",
        "summarise",
        "train",
        "predict",
        "audit",
        "benchmark",
        "reproduce",
        "report",
    }
    assert set(COMMANDS) == several


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_describes_itself_and_shows_an_example(name):
    text = COMMANDS[name].__doc__
    assert len(text.splitlines()[0]) > 20
    assert text.count(f"    idfsmec {name}") >= 2
    shown = runner.invoke(app, [name, "--help"], terminal_width=200).output
    assert f"idfsmec {name}" in shown.split("For example:")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_function_of_the_same_name_and_options(name):
    function = getattr(cli, name)
    own = list(inspect.signature(function).parameters)
    assert [*own, "debug"] == list(inspect.signature(COMMANDS[name]).parameters)


def test_what_means_something_is_there_everywhere():
    options = {
        name: set(inspect.signature(function).parameters) for name, function in COMMANDS.items()
    }
    random = {"demo", "select", "train", "audit", "benchmark", "reproduce"}
    assert {name for name, own in options.items() if "seed" in own} == random
    parallel = {"demo", "features", "train", "predict", "audit", "benchmark", "reproduce"}
    assert {name for name, own in options.items() if "jobs" in own} == parallel
    assert all({"force", "debug"} <= own for own in options.values())
    for name in set(COMMANDS) - random:
        assert "--seed" in COMMANDS[name].__doc__, f"{name} does not say why it has no --seed"
    for name in set(COMMANDS) - parallel:
        assert "--jobs" in COMMANDS[name].__doc__, f"{name} does not say why it has no --jobs"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_of_a_command_is_documented(name):
    hints = typing.get_type_hints(COMMANDS[name], include_extras=True)
    for parameter in inspect.signature(COMMANDS[name]).parameters.values():
        described = [
            part
            for part in (*getattr(hints[parameter.name], "__metadata__", ()), parameter.default)
            if isinstance(part, typer.models.ParameterInfo)
        ]
        assert any(part.help for part in described), f"{name}: {parameter.name} says nothing"
