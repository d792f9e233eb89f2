"""The user's state folder: where files go that a person keeps, but nobody edits.

>>> import os
>>> before = os.environ.get("XDG_STATE_HOME")
>>> os.environ["XDG_STATE_HOME"] = "/var/lib/ada"
>>> str(user_state_folder())
'/var/lib/ada/netclust'
>>> _ = os.environ.pop("XDG_STATE_HOME") if before is None else os.environ.update(XDG_STATE_HOME=before)
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["user_state_folder"]


def user_state_folder() -> Path:
    """Return `netclust` in XDG_STATE_HOME, or in ~/.local/state if that is not an absolute path."""
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state"
    return base / "netclust"
