r"""Suricata's eve.json: its flow events; the others are counted and passed over.

Suricata tells which TCP flags each side sent, not in which order; Zeek's conn_state is made of them (`conn_state`).
It counts whole frames: 14 bytes of Ethernet are taken off a packet for its IP size, and the usual headers of IP and
transport for its payload. Of TCP that is an estimate (timestamps are assumed, retransmissions count), and 0 if nobody
answered.

>>> from collections import Counter
>>> from netclust.stream.sources.dialects import Notes
>>> dialect = EveDialect("eve.json", Notes(Counter()))
>>> line = b'{"timestamp":"2026-01-02T03:04:06.0+0000","flow_id":7,"event_type":"flow","src_ip":"10.0.0.1",' \
...     b'"src_port":4000,"dest_ip":"10.0.0.2","dest_port":53,"proto":"UDP","app_proto":"dns","flow":{' \
...     b'"pkts_toserver":1,"pkts_toclient":1,"bytes_toserver":72,"bytes_toclient":132,' \
...     b'"start":"2026-01-02T03:04:05.0+0000","end":"2026-01-02T03:04:05.5+0000"}}\n'
>>> (conn,) = dialect.parse(line)
>>> conn.uid, conn.orig, conn.end - conn.start
('7', (1, 30, 58), 500000000)
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from netclust.kernels.packets import decode
from netclust.stream.sources.conn_records import MAX_COUNT, Conn, address_words, iso_ns, protocol_number
from netclust.stream.sources.log_format import LogDialect

__all__ = ["EveDialect", "conn_state"]

FIN, SYN, RST = 1, 2, 4
_ETHERNET = 14
# Headers: of TCP with timestamps, as too little payload is less wrong than some where there is none; of ICMP none, as
# its 8 bytes count as payload. A SYN has more options.
_TRANSPORT = {decode.TCP: 32, decode.UDP: 8}
_SYN_OPTIONS = 8
_NO_DATA = ("S0", "REJ", "RSTOS0", "SH")

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Byte = Annotated[int, msgspec.Meta(ge=0, le=255)]
Text = Annotated[str, msgspec.Meta(max_length=256)]


class _Kind(msgspec.Struct):
    event_type: str = ""


class _Flow(msgspec.Struct):
    start: Text
    pkts_toserver: Count
    pkts_toclient: Count
    bytes_toserver: Count
    bytes_toclient: Count
    end: Text = ""
    state: Text = ""


class _Tcp(msgspec.Struct):
    tcp_flags_ts: Text = "0"
    tcp_flags_tc: Text = "0"


class _Event(msgspec.Struct):
    flow: _Flow
    src_ip: Text
    dest_ip: Text
    proto: Text
    timestamp: Text = ""
    src_port: Port = 0
    dest_port: Port = 0
    flow_id: int | str = ""
    app_proto: Text = ""
    icmp_type: Byte = 0
    icmp_code: Byte = 0
    tcp: _Tcp | None = None


_kind = msgspec.json.Decoder(_Kind)
_event = msgspec.json.Decoder(_Event)


class EveDialect(LogDialect):
    """One log file or writer."""

    def read_line(self, line: bytes) -> Conn | None:
        """The connection that a flow event tells of."""
        if _kind.decode(line).event_type != "flow":
            self.notes.counters["other_events"] += 1
            return None
        event = _event.decode(line)
        flow, number = event.flow, protocol_number(event.proto)
        for address in (event.src_ip, event.dest_ip):
            address_words(address)  # raises ValueError
        headers = (40 if ":" in event.src_ip else 20) + _TRANSPORT.get(number, 0)
        start, state, is_tcp = iso_ns(flow.start), _state(event), number == decode.TCP
        empty = is_tcp and state in _NO_DATA
        conn = Conn(
            uid=str(event.flow_id)[:64],
            start=start,
            end=max(iso_ns(flow.end or event.timestamp), start),
            source=event.src_ip,
            source_port=event.src_port,
            destination=event.dest_ip,
            destination_port=event.dest_port,
            proto=number,
            app=event.app_proto,
            state=state,
            orig=_side(flow.pkts_toserver, flow.bytes_toserver, headers, is_tcp, empty),
            resp=_side(flow.pkts_toclient, flow.bytes_toclient, headers, is_tcp, empty),
            icmp=(event.icmp_type, event.icmp_code),
        )
        return self.labelled(conn, line)


def _side(packets: int, frame_bytes: int, headers: int, is_tcp: bool, empty: bool) -> tuple[int, int, int]:
    ip_bytes = max(frame_bytes - _ETHERNET * packets, 0)
    payload = 0 if empty else max(ip_bytes - headers * packets - _SYN_OPTIONS * is_tcp, 0)
    return packets, payload, ip_bytes


def _state(event: _Event) -> str:
    if event.tcp is None:  # of TCP without flags only this is known
        return {"new": "S0", "established": "S1", "closed": "SF"}.get(event.flow.state, "OTH")
    return conn_state(int(event.tcp.tcp_flags_ts, 16), int(event.tcp.tcp_flags_tc, 16))


def conn_state(orig: int, resp: int) -> str:
    """Zeek's name for a TCP connection, from the flags that each side sent.

    >>> [conn_state(SYN, 0), conn_state(SYN, RST), conn_state(SYN | FIN, SYN | FIN), conn_state(SYN, SYN | RST)]
    ['S0', 'REJ', 'SF', 'RSTR']
    """
    if not orig & SYN:  # the beginning was not seen; a lone answer has names of its own
        return "OTH" if not resp & SYN else "RSTRH" if resp & RST else "SHR" if resp & FIN else "OTH"
    if not resp & SYN:
        return "REJ" if resp & RST else "RSTOS0" if orig & RST else "SH" if orig & FIN else "S0"
    if orig & FIN and resp & FIN:  # a reset behind it changes nothing
        return "SF"
    if orig & RST:
        return "RSTO"
    if resp & RST:
        return "RSTR"
    return "S2" if orig & FIN else "S3" if resp & FIN else "S1"
