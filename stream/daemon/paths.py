"""Where the daemon keeps its state: one rule, for the daemon and for the commands that look into it.

>>> import os
>>> before = os.environ.get("STATE_DIRECTORY")
>>> os.environ["STATE_DIRECTORY"] = "/var/lib/netclust"
>>> str(store_path())
'/var/lib/netclust/netclust.db'
>>> _ = os.environ.pop("STATE_DIRECTORY") if before is None else os.environ.update(STATE_DIRECTORY=before)
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["STORE_NAME", "default_state_dir", "store_path"]

STORE_NAME = "netclust.db"


def default_state_dir() -> Path:
    """systemd's STATE_DIRECTORY; else for root /var/lib/netclust; else netclust in XDG_STATE_HOME or ~/.local/state."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]  # systemd gives several with colons
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/netclust")
    from netclust.foundation.state_folder import user_state_folder

    return user_state_folder()


def store_path(state: str | Path | None = None) -> Path:
    """The SQLite store in a state folder, or in the default one."""
    return (Path(state) if state else default_state_dir()) / STORE_NAME
