"""Content attributes from cleartext dialogues: FTP, Telnet, SMTP, POP3, IMAP, HTTP. See docs/captures.md for the rules.

Lines are put together from segments in order, looked at, and forgotten; only counts remain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner
from netclust.kernels.packets.flow_layout import FTP, HTTP, IMAP, LINE_BYTES, POP3, SMTP, TELNET


def _words(*words: str) -> NDArray[np.uint8]:
    """Lower-case words as one array, each behind its length: what a line is searched for."""
    return np.frombuffer(b"".join(bytes([len(w)]) + w.encode() for w in words), np.uint8).copy()


_GUESTS = _words("anonymous", "ftp", "guest")
_ROOT = _words("root", "administrator")
_SECRETS = _words("/etc/passwd", "/etc/shadow", ".rhosts", ".netrc", "boot.ini", "/.ssh/", "hosts.equiv")
_SYSTEM_PLACES = _words("/bin", "/sbin", "/usr/bin", "/etc", "/dev", "/lib", "system32", "../..")
_FILE_COMMANDS = _words("stor ", "appe ", "stou ", "mkd ", "xmkd ")
_SHELLS = _words("/bin/sh", "/bin/bash", "/bin/csh", "/bin/ksh", "/bin/zsh", "cmd.exe", "powershell", "site exec")
_MAKES_FILES = _words("touch ", "mkdir ", "cp ", "mv ", "vi ", "ftp ", "wget ", "curl ", "tar ", "gcc ", "cc ", " > ")
_LOGIN_FAILED = _words(
    "login incorrect", "incorrect password", "authentication failure", "login failed", "access denied"
)
_LOGIN_DONE = _words("last login", "welcome to", "logged in")
_PROBES = _words("expn ", "vrfy ", "debug", "wiz")
_WEB_TRICKS = _words(
    "union select", "union+select", "union%20select", "union all", "select+", "or 1=1", "or+1=1", "%27+or", "%27%20or",
    "<script", "%3cscript", "onerror=", "javascript:", "cmd.exe", "/bin/sh", "../", "..%2f", "/phf", "xp_cmdshell",
)  # fmt: skip
_PASSWORD, _LOGIN, _SU = 1, 2, 3
_MAIL_BYTES = 8192  # of a direction of SMTP, POP3 or IMAP that are looked at: who logs in does so at the beginning
_REQUEST_BYTES = 512  # of a request's first line that are looked at


@borrowing(inner)
def _lower(byte: int) -> int:
    return byte + 32 if 65 <= byte <= 90 else byte


@borrowing(inner)
def _has(line: NDArray[np.uint8], start: int, end: int, words: NDArray[np.uint8], only_first: bool) -> bool:
    """Whether any of the words is in the line, or (only_first) stands at its beginning."""
    w = 0
    while w < len(words):
        size = np.int64(words[w])
        for at in range(start, start + 1 if only_first else end - size + 1):
            if at + size > end:
                break
            k = 0
            while k < size and _lower(np.int64(line[at + k])) == words[w + 1 + k]:
                k += 1
            if k == size:
                return True
        w += 1 + size
    return False


@borrowing(inner)
def _code(line: NDArray[np.uint8], start: int, end: int) -> int:
    """The three digits that an answer begins with, or 0."""
    if end - start < 3:
        return 0
    code = 0
    for k in range(start, start + 3):
        digit = np.int64(line[k]) - 48
        if digit < 0 or digit > 9:
            return 0
        code = 10 * code + digit
    return code


@borrowing(inner)
def read_dialogue(
    data: NDArray[np.uint8], at: int, end: int, broken: bool, from_orig: bool, flow: Any, side: Any,
    line: NDArray[np.uint8],
) -> None:  # fmt: skip
    """New bytes of one direction, in order; `broken` if some before them were lost."""
    if flow.app == HTTP:
        _http(data, at, end, from_orig, flow)
        return
    if flow.app in (SMTP, POP3, IMAP) and side.payload_bytes > _MAIL_BYTES:
        return  # mail itself
    if broken:
        side.line, side.skip = 0, 0
    for k in range(at, end):
        byte = data[k]
        if byte == 10 or byte == 13:
            if side.line and not side.skip:
                _line(line, side.line, from_orig, flow)
            side.line, side.skip = 0, 0
        elif side.line == LINE_BYTES:
            if not side.skip:
                _line(line, side.line, from_orig, flow)
            side.skip = 1
        else:
            line[side.line] = byte
            side.line += 1
    if flow.app == TELNET and not from_orig and side.line:
        _prompt(line, side.line, flow)


@borrowing(inner)
def _line(line: NDArray[np.uint8], size: int, from_orig: bool, flow: Any) -> None:
    if flow.app == FTP:
        _ftp(line, size, from_orig, flow)
    elif flow.app == TELNET:
        _telnet(line, size, from_orig, flow)
    elif flow.app == SMTP:
        _smtp(line, size, from_orig, flow)
    else:
        _mailbox(line, size, from_orig, flow)


@borrowing(inner)
def _ftp(line: NDArray[np.uint8], size: int, from_orig: bool, flow: Any) -> None:
    if not from_orig:
        code = _code(line, 0, size)
        if code == 230:
            flow.logged_in = 1
            flow.root_shell = flow.is_host_login
            flow.hot += flow.is_guest_login
        elif code == 530:
            flow.num_failed_logins += 1
        elif code in (550, 553):
            flow.num_compromised += 1  # a path that is not there or not allowed
        return
    if _lower(np.int64(line[0])) == 117 and size > 5:  # user
        flow.is_guest_login = _has(line, 5, size, _GUESTS, True)
        flow.is_host_login = _has(line, 5, size, _ROOT, True)
    elif _has(line, 0, size, _FILE_COMMANDS, True):
        flow.num_file_creations += 1
        if _has(line, 0, size, _SYSTEM_PLACES, False):
            flow.hot += 1
    elif _has(line, 0, size, _SYSTEM_PLACES, False):
        flow.hot += 1
    if _has(line, 0, size, _SECRETS, False):
        flow.num_access_files += 1
    if _has(line, 0, size, _SHELLS, False):
        flow.num_shells += 1
        flow.hot += 1


@borrowing(inner)
def _telnet(line: NDArray[np.uint8], size: int, from_orig: bool, flow: Any) -> None:
    if not from_orig:
        if _has(line, 0, size, _LOGIN_FAILED, False):
            flow.num_failed_logins += 1
        elif _has(line, 0, size, _LOGIN_DONE, False):
            flow.logged_in = 1
        return
    if size >= 2 and line[0] == 115 and line[1] == 117 and (size == 2 or line[2] == 32):  # su
        flow.su_attempted += 1
        flow.command = _SU
    if _has(line, 0, size, _SECRETS, False):
        flow.num_access_files += 1
        flow.hot += 1
    if _has(line, 0, size, _SHELLS, False):
        flow.num_shells += 1
    if _has(line, 0, size, _MAKES_FILES, False):
        flow.num_file_creations += 1
    if line[0] == 46 and size > 1 and line[1] == 47:  # ./program
        flow.hot += 1
    if flow.root_shell:
        flow.num_root += 1


@borrowing(inner)
def _prompt(line: NDArray[np.uint8], size: int, flow: Any) -> None:
    """A line that waits for an answer: a shell's prompt shows that someone is in, and as whom."""
    last = size - 1
    while last > 0 and line[last] == 32:
        last -= 1
    if line[last] == 36 or line[last] == 37 or line[last] == 62:  # $ % >
        flow.logged_in = 1
    elif line[last] == 35:  # of root
        flow.logged_in = flow.root_shell = 1


@borrowing(inner)
def _smtp(line: NDArray[np.uint8], size: int, from_orig: bool, flow: Any) -> None:
    if from_orig:
        if _has(line, 0, size, _PROBES, True):
            flow.hot += 1
        return
    code = _code(line, 0, size)
    if code in (235, 354):  # authenticated, or a message is accepted
        flow.logged_in = 1
    elif code in (454, 535):
        flow.num_failed_logins += 1


@borrowing(inner)
def _mailbox(line: NDArray[np.uint8], size: int, from_orig: bool, flow: Any) -> None:
    """POP3 and IMAP: an answer counts for the login that it answers."""
    if from_orig:
        if flow.app == POP3:
            flow.command = _PASSWORD if size > 4 and _lower(np.int64(line[0])) == 112 and line[4] == 32 else 0
            return
        word = 0  # behind the tag
        while word < size and line[word] != 32:
            word += 1
        is_login = (
            word + 6 < size and _lower(np.int64(line[word + 1])) == 108 and _lower(np.int64(line[word + 2])) == 111
        )
        flow.command = _LOGIN if is_login and _lower(np.int64(line[word + 4])) == 105 else 0
        return
    if not flow.command:
        return
    if flow.app == POP3:
        ok, bad = line[0] == 43, line[0] == 45
    else:
        word = 0
        while word < size and line[word] != 32:
            word += 1
        if line[0] == 42 or word + 2 >= size:  # untagged
            return
        letter = _lower(np.int64(line[word + 1]))
        ok, bad = letter == 111, letter in (110, 98)
    flow.command = 0
    if ok:
        flow.logged_in = 1
    elif bad:
        flow.num_failed_logins += 1


@borrowing(inner)
def _http(data: NDArray[np.uint8], at: int, end: int, from_orig: bool, flow: Any) -> None:
    """The first line of a segment, if it is a request's or a status line; bodies are not read."""
    if end - at < 12 or data[at] < 65 or data[at] > 90:
        return
    stop = at
    while stop < end and stop - at < _REQUEST_BYTES and data[stop] != 10:
        stop += 1
    if not from_orig:
        if data[at] == 72 and data[at + 1] == 84 and data[at + 4] == 47:  # HTTP/
            code = _code(data, at + 9, stop)
            if 200 <= code < 400:
                flow.logged_in = 1
            elif code == 401:
                flow.num_failed_logins += 1
            elif code == 404 and flow.hot:
                flow.num_compromised += 1
        return
    if _has(data, at, stop, _SECRETS, False):
        flow.num_access_files += 1
        flow.hot += 1
    if _has(data, at, stop, _WEB_TRICKS, False):
        flow.hot += 1
