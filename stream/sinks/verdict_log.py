"""The log of single verdicts: lines that the daemon makes, in a file that behaves as that of the alerts does."""

from __future__ import annotations

from netclust.stream.sinks.line_file import LineFile


class VerdictLog(LineFile):
    """`write_lines` appends, `sync` is for the checkpoint, `open` cuts back to it, `reopen` after logrotate."""

    cuts_back = True
