"""The command line: `netclust VERB TASK ...`. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from netclust.errors import NetclustError

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """Run the command line; errors that are the input's fault are one line and exit code 2."""
    try:
        code = _run(sys.argv[1:] if args is None else args)
        sys.stdout.flush()
    except NetclustError as error:
        _stop(str(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): that is not an error.
        _drop_output()
        sys.exit(0)
    except OSError as error:
        if error.filename is None:  # it may be the output that cannot be written
            _drop_output()
        _stop(f"{error.filename or 'output'}: {error.strerror or error}", 1)
    except MemoryError as error:
        _stop(f"not enough memory: use fewer records or a smaller window ({error})", 1)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    sys.exit(code)


def _run(args: list[str]) -> int:
    """Parse and run; the exit code."""
    import typer

    from netclust.cli.app import load_commands
    from netclust.kernels import announcing

    announcing.on_terminal()
    usage_problem: Any = typer.BadParameter.__mro__[2]  # ClickException, of whichever click this typer brings
    command: Any = typer.main.get_command(load_commands(args[0] if args else None))
    command._main_shell_completion({}, "netclust")  # answers the shell and exits, if it is the shell that asks
    try:
        with command.make_context("netclust", list(args)) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except usage_problem as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            path = error.ctx.command_path if getattr(error, "ctx", None) else "netclust"
            _stop(f"{error.format_message()} See {path} --help", error.exit_code)
        return int(error.exit_code)
    return 0


def _drop_output() -> None:
    """Send what is left of the output nowhere, or Python would fail once more at its end, with exit code 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop(message: str, code: int) -> NoReturn:
    """One line for the person at the terminal, never a traceback."""
    from netclust.foundation.text import sanitize

    sys.stderr.write(f"netclust: {sanitize(message)}\n")
    sys.exit(code)
