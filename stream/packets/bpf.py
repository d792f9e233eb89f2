"""Filter expressions of tcpdump to classic BPF programs, and how a socket gets one.

Compiled for the interface, with libpcap where it is found, else by `tcpdump -ddd`: what `vlan` and `inbound` mean
differs between an interface and a file. The program also cuts packets: it returns how many bytes are kept.

>>> bpf_keep(128)
[(6, 0, 0, 128)]
"""

from __future__ import annotations

import ctypes
import ctypes.util
import shutil
import socket
import struct
import subprocess
from typing import Any, TypeAlias

from netclust.errors import InputError

Program: TypeAlias = list[tuple[int, int, int, int]]
"""Instructions (code, jump if true, jump if false, constant)."""

SO_ATTACH_FILTER = 26
_RETURN = 0x06  # BPF_RET | BPF_K
_ERROR_BYTES = 256  # PCAP_ERRBUF_SIZE
_UNKNOWN_NETMASK = 0xFFFFFFFF
_TCPDUMP_SECONDS = 20


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32))


class _PcapProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.POINTER(_Instruction)))


def bpf_keep(snaplen: int) -> Program:
    """Return the program that takes every packet, cut to `snaplen` bytes; 0 takes none."""
    return [(_RETURN, 0, 0, snaplen)]


def attach_bpf(sock: socket.socket, program: Program) -> None:
    """Put a program on a socket in place of the one before it, in one step."""
    code = (_Instruction * len(program))(*(_Instruction(*one) for one in program))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))


def compile_bpf(expression: str, interface: str, snaplen: int) -> Program:
    """Return the program of a tcpdump expression for packets of an interface; the empty expression takes every
    packet."""
    if not expression.strip():
        return bpf_keep(snaplen)
    library = _libpcap()
    if library is not None:
        return _with_libpcap(library, expression, interface, snaplen)
    tcpdump = shutil.which("tcpdump") or shutil.which("tcpdump", path="/usr/sbin:/usr/bin:/sbin")
    if tcpdump is None:
        raise InputError(
            f"the filter {expression!r} needs libpcap or tcpdump to compile it, and neither was found: "
            "install libpcap0.8 (Debian), libpcap (Fedora, Alpine, Arch) or tcpdump, or capture without a filter"
        )
    return _with_tcpdump(tcpdump, expression, interface, snaplen)


def _libpcap() -> Any:
    """The library, or None: find_library needs tools that small containers lack, so the usual names are tried too."""
    for name in (ctypes.util.find_library("pcap"), "libpcap.so.1", "libpcap.so.0.8"):
        if name:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    return None


def _with_libpcap(library: Any, expression: str, interface: str, snaplen: int) -> Program:
    library.pcap_create.restype = ctypes.c_void_p
    library.pcap_geterr.restype = ctypes.c_char_p
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    # A second, short-lived capture: only for an activated interface does libpcap know which tags the kernel takes off.
    handle = ctypes.c_void_p(library.pcap_create(interface.encode(), error))
    if not handle:
        raise InputError(f"the filter {expression!r} cannot be compiled for {interface}: {error.value.decode()}")
    try:
        library.pcap_set_snaplen(handle, snaplen)
        library.pcap_set_buffer_size(handle, 1 << 16)
        if library.pcap_activate(handle) < 0:
            reason = library.pcap_geterr(handle).decode(errors="replace")
            raise InputError(f"the filter {expression!r} cannot be compiled for {interface}: {reason}")
        program = _PcapProgram()
        mask = ctypes.c_uint32(_UNKNOWN_NETMASK)
        if library.pcap_compile(handle, ctypes.byref(program), expression.encode(), 1, mask):
            raise _bad_filter(expression, library.pcap_geterr(handle).decode(errors="replace"))
        found = [(i.code, i.jt, i.jf, i.k) for i in program.instructions[: program.length]]
        library.pcap_freecode(ctypes.byref(program))
        return found
    finally:
        library.pcap_close(handle)


def _with_tcpdump(tcpdump: str, expression: str, interface: str, snaplen: int) -> Program:
    command = [tcpdump, "-i", interface, "-s", str(snaplen), "-ddd", "--", expression]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_TCPDUMP_SECONDS, check=False)  # noqa: S603 (no shell)
    except (OSError, subprocess.TimeoutExpired) as err:
        raise InputError(f"the filter {expression!r} cannot be compiled, {tcpdump} does not run: {err}") from err
    if ran.returncode:
        raise _bad_filter(expression, ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else "no reason given")
    rows = [[int(word) for word in line.split()] for line in ran.stdout.splitlines()[1:]]
    return [(code, jt, jf, k) for code, jt, jf, k in rows]


def _bad_filter(expression: str, reason: str) -> InputError:
    return InputError(
        f"the filter {expression!r} is not understood: {reason.removeprefix('tcpdump: ')} "
        "(the syntax is that of tcpdump, see `man pcap-filter`)"
    )
