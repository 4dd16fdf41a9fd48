"""The command line's common behaviour: version, help, exit codes."""

import errno

import typer
from typer.testing import CliRunner

from idfsmec.cli import _app, app
from idfsmec.errors import InputError

runner = CliRunner()


def run_and_raise(monkeypatch, error, *options):
    """Run a command that fails with ``error``."""
    other = typer.Typer()
    monkeypatch.setattr(_app, "app", other)
    other.callback()(_app.main)

    @_app.command("fail")
    def fail() -> None:
        raise error

    return runner.invoke(other, [*options, "fail"])


def test_version_is_printed():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("idfsmec ")


def test_bad_input_ends_in_one_line_and_exit_code_2(monkeypatch):
    result = run_and_raise(monkeypatch, InputError("table.csv: no column\n'label'; add one"))
    assert result.exit_code == 2
    assert result.stderr.strip() == "error: table.csv: no column 'label'; add one"


def test_a_missing_file_is_bad_input(monkeypatch):
    result = run_and_raise(monkeypatch, FileNotFoundError(2, "No such file", "x.csv"))
    assert result.exit_code == 2
    assert "x.csv" in result.stderr


def test_failed_work_ends_with_exit_code_1_and_no_traceback(monkeypatch):
    result = run_and_raise(monkeypatch, RuntimeError("solver broke"))
    assert result.exit_code == 1
    assert "Traceback" not in result.output + result.stderr


def test_debug_shows_the_traceback(monkeypatch, capfd):
    result = run_and_raise(monkeypatch, RuntimeError("solver broke"), "--debug")
    assert "Traceback" in result.stderr + capfd.readouterr().err


def test_unknown_commands_and_options_are_bad_usage():
    assert runner.invoke(app, ["nonsense"]).exit_code == 2
    assert runner.invoke(app, ["demo", "--nonsense"]).exit_code == 2


def test_debug_may_stand_behind_the_commands_name(tmp_path, capfd):
    missing = str(tmp_path / "nowhere.csv")
    quiet = runner.invoke(app, ["select", missing])
    assert "Traceback" not in quiet.stderr + capfd.readouterr().err
    loud = runner.invoke(app, ["select", missing, "--debug"])
    assert loud.exit_code == 2
    assert "Traceback" in loud.stderr + capfd.readouterr().err
    after = runner.invoke(app, ["select", missing])
    assert "Traceback" not in after.stderr + capfd.readouterr().err


def test_ctrl_c_ends_with_the_shells_code_and_one_line(monkeypatch):
    result = run_and_raise(monkeypatch, KeyboardInterrupt("stopped; all is kept"))
    assert result.exit_code == 130
    assert result.stderr.strip() == "error: stopped; all is kept"


def test_used_up_memory_is_said_without_using_more(monkeypatch, capfd):
    assert run_and_raise(monkeypatch, MemoryError()).exit_code == 1
    said = capfd.readouterr().err
    assert said.startswith("error: out of memory; give fewer --jobs")
    assert "Traceback" not in said


def test_too_many_open_files_are_said_also_where_a_library_stumbles_over_them(monkeypatch):
    stumbled = UnboundLocalError("cannot access local variable 'child_r'")
    stumbled.__context__ = OSError(errno.EMFILE, "Too many open files")
    result = run_and_raise(monkeypatch, stumbled)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: too many open files; give fewer --jobs")


def test_an_error_of_the_system_names_the_file_not_its_number(monkeypatch):
    result = run_and_raise(monkeypatch, PermissionError(13, "Permission denied", "table.csv"))
    assert result.stderr.strip() == "error: table.csv: Permission denied"


def test_no_arguments_show_the_help():
    assert "Commands" in runner.invoke(app, []).output
