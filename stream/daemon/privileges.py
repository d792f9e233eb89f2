"""Give up root once everything is open; keep CAP_NET_RAW only where a live source may have to open its interface again.

Must be called before threads are started: capabilities belong to threads.

>>> import os
>>> if os.geteuid() != 0:
...     drop_root("nobody", keep_net_raw=False)
"""

from __future__ import annotations

import ctypes
import os
import pwd
from collections.abc import Iterable
from pathlib import Path

from netclust.errors import InputError

__all__ = ["drop_root"]

_PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 8, 38
_CAPABILITY_VERSION_3 = 0x20080522
CAP_NET_RAW = 13
DEFAULT_USER = "nobody"


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_root(user: str, *, keep_net_raw: bool, own: Iterable[Path] = ()) -> None:
    """Become `user` for good, if we are root; the folders and files `own` are given to it. Without root: nothing."""
    if os.geteuid() != 0:
        return
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise InputError(f"daemon.user: there is no user {user!r} here") from None
    if entry.pw_uid == 0:
        raise InputError("daemon.user: the daemon does not stay root: name an ordinary user")
    for folder in own:
        _give(folder, entry.pw_uid, entry.pw_gid)
    libc = ctypes.CDLL(None, use_errno=True)
    if keep_net_raw:
        _must(libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "keep capabilities")
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    mask = 1 << CAP_NET_RAW if keep_net_raw else 0
    data = (_Data * 2)(_Data(mask, mask, 0), _Data(0, 0, 0))
    _must(libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), data), "set capabilities")
    _must(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "refuse new privileges")


def _give(given: Path, uid: int, gid: int) -> None:
    """A folder and the files in it, or a file, but nothing that a link points to."""
    for path in (given, *given.rglob("*")) if given.is_dir() else (given,):
        os.chown(path, uid, gid, follow_symlinks=False)


def _must(result: int, what: str) -> None:
    if result != 0:
        raise InputError(f"could not {what}: {os.strerror(ctypes.get_errno())}")
