"""The command line: `netclust VERB TASK ...`. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys

from netclust.errors import NetclustError

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """Run the command line; errors that are the input's fault are one line and exit code 2."""
    from netclust.cli.app import app

    try:
        app(args=args, prog_name="netclust")
    except NetclustError as error:
        sys.stderr.write(f"netclust: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): that is not an error.
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.stderr.write("netclust: interrupted\n")
        sys.exit(130)
