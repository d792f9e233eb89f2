"""The ledger of runs on a public test set: one JSON line per run, so that every use of the test labels is counted.

A test set is known by the SHA-256 of its unpacked bytes (`RecordReader.sha256`), whatever its file is called; the
public captures that detection is measured on are one test set. Commands that evaluate or reproduce append to the
ledger. It is the file that NETCLUST_LOOKS names (`off` or nothing: none), else `test-looks.jsonl` in the user's state
folder. Benchmarks of the repository name `benchmarks/test-looks.jsonl`.

>>> import tempfile
>>> kdd_test = "fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84"
>>> with tempfile.TemporaryDirectory() as folder:
...     ledger = Path(folder, "looks.jsonl")
...     record_test_use("an example", kdd_test, rows=36, draws=5, ledger=ledger)
...     record_test_use("our own records", "0" * 64, rows=1, draws=1, ledger=ledger)
...     count_test_uses(ledger)
True
False
(1, 36)
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from netclust.errors import InputError
from netclust.foundation.state_folder import user_state_folder

__all__ = ["TEST_SETS", "LedgerEntry", "count_test_uses", "find_ledger", "record_test_use"]

VARIABLE = "NETCLUST_LOOKS"
LEDGER_NAME = "test-looks.jsonl"

_CAPTURES = (
    "3c5fc7467a0205fd083115926416064d6f256af7705131adeb909f94ef66e7fa",  # stopddos_pkt.TCP.synflood.spoofed.pcap
    "9339d7bc9d78e04a189b027890355d0b3c2687a720c32606acfa31d5325cd87e",  # stopddos_amp.TCP.reflection.SYNACK.pcap
    "752df931f30ee5528a6670c4257c6cfce6df49c0de836e8bd4091ebf743e926c",  # stopddos_amp.UDP.snmp.src161.pcapng
    "24acdecb1f532f59a84c2a48666c7b5026a78ae780ba58a785004fe9ddc57adf",  # netlyzer_ddos.pcap
    "dec17c51b1b9d464831edb6e1f0a5bbcbeabdc519bfb4a5a402803384adb257c",  # ndpi_synscan.pcap
    "3ef7a9011bcc2901080d3800d52fd5bb5cbcc1aeb8b5943bed3810868400aa58",  # chrissanders_synscan.pcapng
    "5d6183b37582486ad90353eb0ef03e024dd8eb95cfd45934091193c9c4f79c10",  # ndpi_WebattackXSS.pcap
    "797a4459cbecb7c3a18122a516758562ff62ffdabe3d1ab3862b8621a57e3545",  # ndpi_WebattackSQLinj.pcap
    "a57f410ea701bded501b6fdcec255ac29a0bbc04476e85e07ecee259948c95ad",  # slips_malicious-ssh-bruteforce.pcap
    "d06135c0405803a0a6fbf0b595ba6e2b9264a9cbea4f012b6fbb9b6ee596e402",  # zeek_ftp_bruteforce.pcap
    "2276e5ac0303296b71d3363c6e844cd94adcac6b256d2b2d4b1c7aa3ccaed035",  # slips_test-cc-capture-1.pcap
    "22167c7146f4c349bd35b4a45f6ac91f5715867211cfdccf60cf8072a31acad2",  # ndpi_dns_exfiltration.pcap
    "d163e6192f21fe6a43e153f46de9e509c2b1b31dd900bfde766d4fe26b69e70e",  # ndpi_icmp-tunnel.pcap
    "db8b55f728bd3828e0669190ddfd828d588db180a3f6b315a1677336719933c8",  # stopddos_amp.dns.RRSIG.fragmented.pcap
    "cd864709778a7449955671315d1ccc3c6694bb120732c6f60fa9ba01e5c962cb",  # slips_test7-malicious.pcap
    "191da8b6eba7846750df8b8d2dbca9664cabdcce0f51978349de5c764e3e6361",  # slips_test8-malicious.pcap
    "6aa353557c36124520fd4be8de4820f5a9b646863faa1ef43badb39d3daeb2a3",  # hatboy_ftp_bru.pcap
    "80dcc2602519479ddcde889fa902fee19a76696630811452f8df38888af894f2",  # iot23_CTU-8-1_hakai.pcap
    "7d6910eb7988210e40902309ae7f63a115c696d3de5baf1ae9e8e221d64fc9c8",  # ndpi_firefox.pcap
    "7a10554aa4b9a8ac29e77c894e9e9be0e1bb2e3cc2210c65b6ebc7efbc578f68",  # ndpi_skype.pcap
    "5e362b04d5d1e36482e794514c0536c04647acfa0b167d9eb82dd7cdbe1a5550",  # ndpi_instagram.pcap
    "a8923986465c03e4751b6401377ed75712cfa9222059c6f9dfac01626c5ae3aa",  # ndpi_zoom2.pcap
    "082b15d9435ff8139d9317011e1bab821a9c082851fb2c669e54935eb9bc14fc",  # chrissanders_http_espn.pcapng
    "ae5e7b3101bd2f49390cfd77376ed176389aba9360307dd424dab51b339c5593",  # iti_ModbusTCP.pcap
    "566c4819a8130d65d29076930bd46dde5c2595a4a8be4a380857feb5b430ec6e",  # zeek_ssh.pcap
)
TEST_SETS = {
    "fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84": "KDDTest+",
    "746993ac9e25868827cacf09eab450050a2a1056e1ce48a1ad39f5dc801d531d": "KDDTest-21",
    **dict.fromkeys(_CAPTURES, "captures"),
    "d8ebdbd675c1659b4b283fcd26ad0dad8a2043ed6ca37f9806c11d99f24ba40f": "real-days",  # 008.conn.log.labeled
    "bb3695adceea9984948c9c784828a816f3d0e8d165f713503ec8e3facc1c4585": "real-days",  # 010.conn.log.labeled
    "6585e27d6bf0bab651904ba735e7e900718006a7894f479d23bb39a966c8f1c7": "real-benign",  # 443-curl.pcap
    "80dfdd96fe2391bf56069b6332040583dd41435dbb450363e087ccd64fa483b3": "cora-citations",
    "aa2ccda699a31f6f766ca85c8bb2231ef97e06698e333f3f8993986d5903ff9e": "20-newsgroups",
    "4fa2d33b0aa5df04be6b2bf0b457704d2c8f345b92898666f7c025aca0352097": "LitBank",  # of the folder conll
    "957a23816df4c13056e0069fc30afbc6b56f676ba025b6c9c027fb71379e84e8": "WikiQA-test",
    "ea38d20296b3ff7e220f477a3b802a9bcb2d768881fe6ee163efbc97ea527a42": "scene-test",
    "4aaac102bff9669a765bf0b378602e5cc8c3b181048282e2f003117b496d552a": "yeast-test",
    "f13d4b746b7b5c8eb484bd751d6ac463d4560dff998a93516a5c1fe35daf6c8f": "emotions-test",
    "2f3aad54a8f54caaab4ab01246fe9dd385ba944a2633028f52747b57eac5474e": "enron-test",
    "6be472e75a6c0b0916187f343a398011b1b26f8f0ddc682c575312ad3532f6c4": "medical-test",
}


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the ledger: a run that evaluated `rows` settings, each with `draws` reference sets."""

    date: str
    what: str
    set: str
    rows: int
    draws: int


def record_test_use(what: str, sha256: str, rows: int, draws: int, ledger: Path | None = None) -> bool:
    """Append a line if the checksum is a test set's; return whether it was. Without a ledger: `find_ledger()`."""
    name = TEST_SETS.get(sha256)
    path = find_ledger() if ledger is None else ledger
    if name is None or path is None:
        return False
    if ledger is None and VARIABLE not in os.environ:
        _make_folder(path.parent)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    look = LedgerEntry(date=date, what=what, set=name, rows=rows, draws=draws)
    _append(path, json.dumps(msgspec.to_builtins(look)).encode() + b"\n")
    return True


def find_ledger() -> Path | None:
    """Return where uses are recorded, or None: where the user has no folder that can be written to."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return None if named in ("", "off") else Path(named)
    try:
        ledger = user_state_folder() / LEDGER_NAME
    except RuntimeError:  # there is no home
        return None
    nearest = next(path for path in (ledger, *ledger.parents) if path.exists())
    return ledger if os.access(nearest, os.W_OK) else None


def count_test_uses(ledger: Path) -> tuple[int, int]:
    """Return (runs, rows): the lines of a ledger and the settings evaluated in them; (0, 0) before the first."""
    try:
        lines = ledger.read_bytes().splitlines()
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        raise InputError(f"{ledger}: {error.strerror}") from None
    looks = [_entry(line, f"{ledger} line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    return len(looks), sum(look.rows for look in looks)


def _entry(line: bytes, where: str) -> LedgerEntry:
    try:
        return msgspec.json.decode(line, type=LedgerEntry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: not a look ({error})") from None


def _make_folder(folder: Path) -> None:
    """Make the state folder before the first look."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}; {VARIABLE} names another file, or is off"
        ) from None


def _append(path: Path, line: bytes) -> None:
    """In one write to the end of the file: runs at the same time do not mix their lines."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            written = os.write(file, line)
        finally:
            os.close(file)
    except OSError as error:
        why = f"the look at the test set cannot be noted there: {error.strerror}"
        raise InputError(f"{path}: {why}; {VARIABLE} names another file, or is off") from None
    if written != len(line):
        raise InputError(f"{path}: the last line is cut short, the disk is full")
