"""Every attack of the capture simulator, and those that are held back by default.

They use the hosts, stacks, ports and dialogues that benign traffic has; what differs is what makes them attacks.

>>> len(KNOWN), len(HELD_BACK), set(KNOWN) | set(HELD_BACK) == set(ATTACKS)
(9, 5, True)
"""

from __future__ import annotations

from collections.abc import Callable

from netclust.datasets.simulators import capture_floods as floods
from netclust.datasets.simulators import capture_intrusions as intrusions
from netclust.datasets.simulators.capture_campaigns import AttackCampaign
from netclust.datasets.simulators.capture_plan import ConnectionPlan

ATTACKS: dict[str, Callable[[ConnectionPlan, AttackCampaign], None]] = {
    "syn_flood": floods.syn_flood,
    "port_scan": floods.port_scan,
    "arp_scan": floods.arp_scan,
    "ssh_brute_force": intrusions.ssh_brute_force,
    "ftp_brute_force": intrusions.ftp_brute_force,
    "dns_exfiltration": intrusions.dns_exfiltration,
    "beaconing": intrusions.beaconing,
    "web_attack": intrusions.web_attack,
    "amplification": floods.amplification_flood,
    "icmp_tunnel": intrusions.icmp_tunnel,
    "host_sweep": floods.host_sweep,
    "botnet_scan": floods.botnet_scan,
    "udp_flood": floods.udp_flood,
    "syn_ack_reflection": floods.syn_ack_reflection,
}
HELD_BACK = ("icmp_tunnel", "botnet_scan", "udp_flood", "syn_ack_reflection", "web_attack")
"""Left out by default, so that tests can tell what a detector makes of an attack that it has not seen."""
KNOWN = tuple(name for name in ATTACKS if name not in HELD_BACK)
