"""What shells, mail, files, devices and the network's own services say on the wire, as parts of templates.

>>> smtp_lines("mail.example.test", "alice", "example.org")[1]
(0, (b'EHLO alice-pc.example.test\\r\\n',))
>>> len(ntp(3)[0]) + 40
48
"""

from __future__ import annotations

import struct

from netclust.datasets.simulators.capture_payloads import PTR, Parts
from netclust.datasets.simulators.capture_templates import (
    size_of,
    template_digits,
    template_hexdigits,
    template_length,
    template_length_little_endian,
    template_noise,
    template_tag,
)

Lines = tuple[tuple[int, Parts], ...]
"""A dialogue: who speaks (0: the client), and what."""

SSH_CLIENTS = (
    "OpenSSH_9.6p1 Ubuntu-3", "OpenSSH_8.9p1 Ubuntu-3ubuntu0.6", "OpenSSH_9.3", "OpenSSH_for_Windows_8.6",
    "PuTTY_Release_0.80", "libssh2_1.11.0", "paramiko_3.4.0", "Go", "libssh_0.10.5",
)  # fmt: skip
SSH_SERVERS = ("OpenSSH_9.2p1 Debian-2+deb12u2", "OpenSSH_8.9p1 Ubuntu-3ubuntu0.6", "dropbear_2022.83", "OpenSSH_8.0")
_ALGORITHMS = (
    b"curve25519-sha256,ecdh-sha2-nistp256", b"ssh-ed25519,rsa-sha2-512", b"aes128-ctr,aes256-gcm@openssh.com",
    b"aes128-ctr,aes256-gcm@openssh.com", b"hmac-sha2-256,hmac-sha1", b"hmac-sha2-256,hmac-sha1", b"none", b"none",
    b"", b"",
)  # fmt: skip


def ssh_banner(software: str) -> Parts:
    """The first line of either side."""
    return (f"SSH-2.0-{software}\r\n".encode(),)


def _ssh_packet(parts: Parts) -> Parts:
    size = size_of(parts)
    padding = 8 - (size + 5) % 8
    padding += 8 if padding < 4 else 0
    return (struct.pack(">IB", size + 1 + padding, padding), *parts, bytes(padding))


def ssh_kexinit(flavour: int) -> Parts:
    """The algorithms that a side offers; flavours differ in length."""
    names = (_ALGORITHMS[0] + b",diffie-hellman-group14-sha256" * (flavour % 4), *_ALGORITHMS[1:])
    lists = b"".join(struct.pack(">I", len(name)) + name for name in names)
    return _ssh_packet((b"\x14", template_noise(16), lists + bytes(5)))


def ssh_exchange() -> Parts:
    """The client's key."""
    return _ssh_packet((b"\x1e\0\0\0\x20", template_noise(32)))


def ssh_reply() -> Parts:
    """The server's key, signed, and the switch to encryption."""
    key: Parts = (b"\0\0\0\x0bssh-ed25519\0\0\0\x20", template_noise(32))
    signature: Parts = (b"\0\0\0\x0bssh-ed25519\0\0\0\x40", template_noise(64))
    body: Parts = (b"\x1f\0\0\0\x33", *key, b"\0\0\0\x20", template_noise(32), b"\0\0\0\x53", *signature)
    return (*_ssh_packet(body), *_ssh_packet((b"\x15",)))


def ssh_newkeys() -> Parts:
    """The client's switch to encryption."""
    return _ssh_packet((b"\x15",))


def _lines(*texts: tuple[int, str]) -> Lines:
    return tuple((side, (f"{text}\r\n".encode(),)) for side, text in texts)


def smtp_lines(server: str, user: str, domain: str) -> Lines:
    """Until the message itself: greeting, sender, recipient, DATA."""
    home = server.partition(".")[2]
    return _lines(
        (1, f"220 {server} ESMTP Postfix"), (0, f"EHLO {user}-pc.{home}"),
        (1, f"250-{server}\r\n250-PIPELINING\r\n250-SIZE 51200000\r\n250-8BITMIME\r\n250 DSN"),
        (0, f"MAIL FROM:<{user}@{home}> SIZE=4821"), (1, "250 2.1.0 Ok"),
        (0, f"RCPT TO:<info@{domain}>"), (1, "250 2.1.5 Ok"), (0, "DATA"), (1, "354 End data with <CR><LF>.<CR><LF>"),
    )  # fmt: skip


def mail_head(user: str, server: str, domain: str) -> Parts:
    """The first lines of a message; the filler is its text."""
    home = server.partition(".")[2]
    text = f"From: {user}@{home}\r\nTo: info@{domain}\r\nSubject: Re: order\r\nMIME-Version: 1.0\r\nMessage-ID: <"
    return (text.encode(), template_hexdigits(12), f"@{home}>\r\n\r\n".encode())


def smtp_end() -> Lines:
    """What follows the message."""
    return (
        (0, (b"\r\n.\r\n",)), (1, (b"250 2.0.0 Ok: queued as ", template_hexdigits(10), b"\r\n")), (0, (b"QUIT\r\n",)),
        (1, (b"221 2.0.0 Bye\r\n",)),
    )  # fmt: skip


def pop3_lines(server: str, user: str, waiting: int) -> Lines:
    """Login and listing."""
    return _lines(
        (1, f"+OK {server} POP3 server ready"), (0, f"USER {user}"), (1, "+OK"), (0, f"PASS {user}2024!"),
        (1, "+OK Logged in."), (0, "STAT"), (1, f"+OK {waiting} {waiting * 5123}"), (0, "LIST"),
        (1, "+OK\r\n" + "".join(f"{i + 1} 5123\r\n" for i in range(waiting)) + "."),
    )  # fmt: skip


def imap_lines(server: str, user: str, waiting: int) -> Lines:
    """Login and the state of the inbox."""
    return _lines(
        (1, f"* OK [CAPABILITY IMAP4rev1 IDLE] {server} ready"), (0, f"a1 LOGIN {user} {user}2024!"),
        (1, "a1 OK Logged in"), (0, "a2 SELECT INBOX"),
        (1, f"* {300 + waiting} EXISTS\r\n* 0 RECENT\r\na2 OK [READ-WRITE] Select completed"),
        (0, "a3 UID SEARCH UNSEEN"),
        (1, "* SEARCH" + "".join(f" {900 + i}" for i in range(waiting)) + "\r\na3 OK Done"),
    )  # fmt: skip


def ftp_login(server: str, user: str, accepted: bool) -> Lines:
    """Greeting, name, password and what the server says to it."""
    verdict = "230 Login successful." if accepted else "530 Login incorrect."
    password: Parts = (b"PASS ", template_hexdigits(6 + len(user) % 5), b"\r\n")
    return (
        *_lines((1, f"220 {server} FTP server (vsFTPd 3.0.5)"), (0, f"USER {user}")),
        *_lines((1, "331 Please specify the password.")),
        (0, password),
        *_lines((1, verdict)),
    )  # fmt: skip


def service_line(text: str) -> Parts:
    """Return one line of a dialogue."""
    return (f"{text}\r\n".encode(),)


def ntp(mode: int) -> Parts:
    """An NTP packet: 3 asks, 4 answers."""
    return (
        bytes([0x20 | mode, 2 if mode == 4 else 0, 6, 0xEC, 0, 0, 1, 0]),
        template_noise(4),
        b"\x0a\0\0\1",
        template_noise(32),
    )


def snmp(kind: int, values: int, community: str = "public") -> Parts:
    """An SNMP version 2c message: 0xA0 get, 0xA2 response, 0xA5 bulk; `values` octet strings of 8 bytes."""
    name = bytes.fromhex("06082b06010201010100")
    inner: list[bytes | object] = []
    size = 0
    value = b"\x04\x08" if values else b"\x05\x00"
    for _ in range(max(values, 1)):
        bind: Parts = (name, value, template_noise(8)) if values else (name, value)
        inner += [_ber(0x30, size_of(bind)), *bind]
        size += len(_ber(0x30, size_of(bind))) + size_of(bind)
    binds = (_ber(0x30, size), *inner)
    head: Parts = (b"\x02\x04\x1a", template_noise(3), b"\x02\x01\x00\x02\x01" + (b"\x0a" if kind == 0xA5 else b"\x00"))
    pdu = size_of(head) + len(binds[0]) + size  # type: ignore[arg-type]
    access = b"\x02\x01\x01\x04" + bytes([len(community)]) + community.encode()
    whole = len(access) + len(_ber(kind, pdu)) + pdu
    return (_ber(0x30, whole) + access + _ber(kind, pdu), *head, *binds)  # type: ignore[arg-type]


def _ber(kind: int, size: int) -> bytes:
    return bytes([kind, size]) if size < 128 else bytes([kind, 0x82, size >> 8, size & 255])


def dhcp(kind: int, mac: bytes, address: bytes, server: bytes, number: bytes) -> Parts:
    """A DHCP message: 1 discover, 2 offer, 3 request, 5 acknowledge."""
    reply = kind in (2, 5)
    zero = bytes(4)
    head = bytes([2 if reply else 1, 1, 6, 0]) + number + bytes(4) + zero + (address if reply else zero) + zero + zero
    options = b"\x63\x82\x53\x63\x35\x01" + bytes([kind])
    if reply:
        options += b"\x36\x04" + server + b"\x33\x04\0\0\x0e\x10\x01\x04\xff\xff\xff\0\x03\x04" + server
    else:
        options += b"\x3d\x07\x01" + mac + b"\x32\x04" + address + b"\x37\x04\x01\x03\x06\x0f"
    body = head + mac + bytes(10) + bytes(192) + options + b"\xff"
    return (body + bytes(max(0, 300 - len(body))),)


def mdns(names: tuple[str, ...]) -> Parts:
    """A multicast question for these services."""
    questions = b""
    for name in names:
        questions += (
            b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0" + struct.pack(">2H", PTR, 1)
        )
    return (struct.pack(">6H", 0, 0, len(names), 0, 0, 0) + questions,)


def ssdp(target: str) -> Parts:
    """A multicast search."""
    text = f'M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: "ssdp:discover"\r\nMX: 2\r\nST: {target}\r\n\r\n'
    return (text.encode(),)


def syslog_service(host: str) -> Parts:
    """Return one line of a device's log."""
    return (f"<30>Jan  1 00:00:00 {host} kernel: link ".encode(), template_digits(4), b" state ", template_digits(1))


def print_job(user: str) -> Parts:
    """The head of a job on a printer's raw port."""
    return (
        f'\x1b%-12345X@PJL JOB NAME="report"\r\n@PJL SET USERNAME="{user}"\r\n@PJL ENTER LANGUAGE=PCL\r\n'.encode(),
    )


def smb_negotiate() -> Parts:
    """A client's SMB 2 NEGOTIATE."""
    body = struct.pack("<HHHHI", 36, 5, 1, 0, 0x7F)
    dialects = struct.pack("<5H", 0x0202, 0x0210, 0x0300, 0x0302, 0x0302)
    return _smb(0, 0, (body, template_noise(16), bytes(8) + dialects))


def smb_dialect() -> Parts:
    """The server's answer."""
    body = struct.pack("<HHHH", 65, 1, 0x0302, 0)
    rest = struct.pack("<IIIIQQHHI", 0x2F, 1 << 20, 1 << 20, 1 << 20, 0x01DA3C0000000000, 0, 128, 0, 0)
    return _smb(0, 1, (body, template_noise(16), rest))


def _smb(command: int, flags: int, body: Parts) -> Parts:
    head = b"\xfeSMB" + struct.pack("<HHIHHIIQIIQ", 64, 1, 0, command, 31, flags, 0, 0, 0xFEFF, 0, 0) + bytes(16)
    return (b"\0" + (size_of(body) + 64).to_bytes(3, "big") + head, *body)


def smb_sealed() -> Parts:
    """The head of an encrypted SMB 3 message; the filler is its content."""
    return (
        b"\0\0",
        template_length(52),
        b"\xfdSMB",
        template_noise(32),
        template_length_little_endian(),
        b"\0\0\1\0",
        template_noise(8),
    )


def rtp(side: int) -> Parts:
    """The head of a packet of sound or picture."""
    return (b"\x80\x60", template_tag(), template_noise(4), bytes([0x5A, 0x17, side, 9]))
