"""What Zeek and Suricata call the protocol that they recognised, by the names of services that ports have.

>>> service_name("ssl", "https"), service_name("ssl", "imap"), service_name("ssh", "https"), service_name("", "high")
('https', 'imap', 'ssh', 'high')
"""

from __future__ import annotations

from functools import lru_cache

__all__ = ["service_name"]

_ENCRYPTED = "https imap smtp pop3 ldap dns mqtt push sip xmpp ftp sql rdp vpn"
# Ours: the service meant, then those of ports where it is no surprise.
_SERVICES = {
    "ssl": _ENCRYPTED,
    "tls": _ENCRYPTED,
    "http": "http",
    "http2": "https http",
    "dns": "dns mdns llmnr netbios",
    "ssh": "ssh",
    "ftp": "ftp",
    "ftp-data": "ftp_data",
    "smtp": "smtp",
    "imap": "imap",
    "pop3": "pop3",
    "smb": "smb",
    "ntlm": "smb http",
    "gssapi": "smb ldap kerberos",
    "dce_rpc": "rpc smb",
    "dcerpc": "rpc smb",
    "krb": "kerberos",
    "krb_tcp": "kerberos",
    "krb5": "kerberos",
    "ldap": "ldap",
    "ldap_tcp": "ldap",
    "ldap_udp": "ldap",
    "rdp": "rdp",
    "dhcp": "dhcp",
    "ntp": "ntp",
    "snmp": "snmp",
    "sip": "sip",
    "irc": "irc",
    "mysql": "sql",
    "pgsql": "sql",
    "postgresql": "sql",
    "modbus": "modbus",
    "mqtt": "mqtt",
    "quic": "quic",
    "rfb": "vnc",
    "syslog": "syslog",
    "tftp": "tftp",
    "telnet": "telnet",
    "xmpp": "xmpp",
    "ike": "vpn",
    "ikev2": "vpn",
    "redis": "redis",
    "nfs": "rpc",
}


@lru_cache(1 << 12)
def service_name(app: str, by_port: str) -> str:
    """The name of the port's service, unless what was recognised (one or several, with commas) does not fit it."""
    for name in app.lower().split(","):
        if name in _SERVICES:
            fitting = _SERVICES[name].split()
            return by_port if by_port in fitting else fitting[0]
    return by_port
