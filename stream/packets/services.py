"""Which service listens at a port: data, in services.toml; by KDD's names and by today's.

>>> kdd_services().names[kdd_services().tcp[80]], kdd_services().names[kdd_services().udp[53]]
('http', 'domain_u')
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.kernels.packets import flow_layout as layout

_APPS = {
    "ftp": layout.FTP,
    "telnet": layout.TELNET,
    "smtp": layout.SMTP,
    "pop3": layout.POP3,
    "imap": layout.IMAP,
    "http": layout.HTTP,
    "dns": layout.DNS,
}


@dataclass(frozen=True, eq=False)
class Services:
    """Service numbers by port, and their names. Number 0 is no service."""

    names: tuple[str, ...]
    tcp: NDArray[np.uint16]
    udp: NDArray[np.uint16]

    def number(self, name: str) -> int:
        """The number of a name."""
        return self.names.index(name)


@cache
def _data() -> dict[str, Any]:
    text = resources.files("netclust").joinpath("stream/packets/services.toml").read_bytes()
    found: dict[str, Any] = msgspec.toml.decode(text)
    return found


@cache
def kdd_services() -> Services:
    """Services as KDD calls them, ICMP's and ARP's too."""
    return _services("kdd")


@cache
def flow_services() -> Services:
    """Services as they are called today."""
    return _services("flow")


def _services(which: str) -> Services:
    data = _data()[which]
    low, high = data["unknown_below_1024"], data["unknown"]
    found = {low, high, *data["tcp"].values(), *data["udp"].values(), *data.get("icmp", {}).values(), *data["others"]}
    names = ("", *sorted(found))
    number = {name: i for i, name in enumerate(names)}
    ports = []
    for proto in ("tcp", "udp"):
        by_port = np.full(65536, number[high], np.uint16)
        by_port[:1024] = number[low]
        for port, name in data[proto].items():
            by_port[int(port)] = number[name]
        ports.append(by_port)
    return Services(names, *ports)


@cache
def icmp_services() -> dict[int, str]:
    """KDD's service of an ICMP type."""
    return {int(kind): name for kind, name in _data()["kdd"]["icmp"].items()}


@cache
def app_ports() -> NDArray[np.uint8]:
    """For the flow table, [tcp or udp, port]: which dialogue is spoken there, and whether a service listens at all."""
    ports = np.zeros((2, 65536), np.uint8)
    data = _data()
    for row, proto in enumerate(("tcp", "udp")):
        ports[row, 1:1024] |= layout.SERVER_PORT
        for which in ("kdd", "flow"):
            for port in data[which][proto]:
                ports[row, int(port)] |= layout.SERVER_PORT
        for app, numbers in data["apps"][proto].items():
            ports[row, numbers] = layout.SERVER_PORT | _APPS[app]
    return ports
