"""Every command and every option says what it is for, and every command shows an example."""

import inspect
import typing

import pytest
import typer

from idfsmec.cli import app

COMMANDS = {info.name: inspect.unwrap(info.callback) for info in app.registered_commands}


def test_the_commands_are_those_of_the_contract():
    assert set(COMMANDS) == {"demo", "features", "select", "benchmark", "reproduce", "report"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_describes_itself_and_shows_an_example(name):
    text = COMMANDS[name].__doc__
    assert len(text.splitlines()[0]) > 20
    assert f"idfsmec {name}" in text


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
