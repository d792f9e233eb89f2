"""Large transfers of a simulated office: FTP, files, printing, video, calls, backups at night. All invented.

>>> sorted(TRANSFERS)
['backup', 'files', 'ftp', 'video']
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from netclust.datasets.simulators import capture_dialogues as talks
from netclust.datasets.simulators import capture_payloads as said
from netclust.datasets.simulators import capture_services as service
from netclust.datasets.simulators.capture_plan import ConnectionPlan, Talk
from netclust.datasets.simulators.capture_templates import Parts
from netclust.datasets.simulators.capture_world import FILES, USERS
from netclust.datasets.simulators.profiles import ALWAYS, EVENING, NIGHT, OFFICE
from netclust.kernels.packets import packet_frames as frames
from netclust.kernels.packets import packet_writer as wire


def _ftp(plan: ConnectionPlan) -> None:
    """Simulate logins with transfers on data connections of their own; some logins fail."""
    world, rng = plan.world, plan.rng
    who, start = plan.arrivals("ftp", world.people, 0.25, OFFICE)
    robots, run = plan.arrivals("ftp robots", world.role("camera", "printer"), 1.2, ALWAYS)
    who, start = np.concatenate([who, robots]), np.concatenate([start, run])
    n = len(who)
    if not n:
        return
    server = np.where(rng.random(n) < 0.6, world.inside[FILES], world.outside[world.popular(rng, n) % 10])
    users, good = rng.integers(0, len(USERS), n), rng.random(n) < 0.93
    talk = Talk(n)
    talks.speak(
        plan,
        talk,
        "ftp",
        lambda u, ok: service.ftp_login("files.office.test", USERS[u], bool(ok)),
        users,
        good,
        thinking=0.3,
    )
    files = np.where(good, rng.geometric(0.5, n), 0)
    port = 50_000 + rng.integers(0, 64, n)
    address = world.arrays()[1][server, :4].astype(int)

    def passive(place: int, number: int) -> Parts:
        a, b, c, d = address[place].tolist()
        return service.service_line(f"227 Entering Passive Mode ({a},{b},{c},{d},{number >> 8},{number & 255}).")

    answers = np.array(
        [plan.template(("pasv", *address[k].tolist(), int(port[k])), passive, k, int(port[k])) for k in range(n)]
    )
    at = start + 1.0
    for k in range(3):
        on = files > k
        at = at + rng.uniform(0.8, 1.6, n)
        talk.say(0, plan.template("PASV", service.service_line, "PASV"), wait=rng.uniform(0.4, 0.8, n), when=on)
        talk.say(1, answers, wait=0.002, when=on)
        talk.say(0, plan.template("STOR", service.service_line, f"STOR report{k}.pdf"), wait=0.01, when=on)
        talk.say(1, plan.template("150", service.service_line, "150 Ok to send data."), wait=0.01, when=on)
        talk.say(
            1,
            plan.template("226", service.service_line, "226 Transfer complete."),
            wait=rng.uniform(0.3, 0.7, n),
            when=on,
        )
        data = Talk(int(on.sum()))
        data.say(0, filler=plan.sizes(data.n, 2e5, 1.6, 500, 3e7))
        plan.tcp("ftp_data", who[on], server[on], port[on], at[on], data, six=False, closing=wire.FIN_A)
    talk.say(0, plan.template("QUIT", service.service_line, "QUIT"), wait=rng.exponential(0.5, n))
    talk.say(1, plan.template("221", service.service_line, "221 Goodbye."), wait=0.002)
    plan.tcp("ftp", who, server, 21, start, talk, six=False, closing=wire.FIN_B)


def _files(plan: ConnectionPlan) -> None:
    """Simulate the file server (SMB) and printing."""
    world, rng = plan.world, plan.rng
    who, start = plan.arrivals("smb", world.role("windows", "mac"), 1.1, OFFICE)
    n = len(who)
    talk = Talk(n)
    talk.say(0, plan.template("smb", service.smb_negotiate))
    talk.say(1, plan.template("smb answer", service.smb_dialect), wait=0.001)
    operations = np.minimum(rng.geometric(0.06, n), 60)
    sealed = plan.template("smb sealed", service.smb_sealed)
    for k in range(60):
        talk.say(
            0, sealed, filler=plan.sizes(n, 130, 0.4, 70, 1000), wait=rng.lognormal(-3.0, 2.0, n), when=operations > k
        )
        talk.say(1, sealed, filler=plan.sizes(n, 700, 1.8, 70, 16000), wait=0.001, when=operations > k)
    plan.tcp("smb", who, world.inside[FILES], 445, start, talk, keepalive=120.0, linger=rng.exponential(60.0, n))
    printers = world.role("printer")
    if len(printers):
        who, start = plan.arrivals("print", world.people, 0.2, OFFICE)
        n = len(who)
        talk = Talk(n)
        users = rng.integers(0, len(USERS), n)
        job = plan.templates("job", lambda u: service.print_job(USERS[u]), users)
        talk.say(0, job, filler=plan.sizes(n, 2e5, 1.2, 3000, 2e7), table=frames.TEXT)
        plan.tcp("print", who, rng.choice(printers, n), 9100, start, talk, six=False)


def _video(plan: ConnectionPlan) -> None:
    """Simulate streams in chunks over TLS or datagrams, and calls with steady small datagrams both ways."""
    world, rng = plan.world, plan.rng
    watchers = np.concatenate([world.people, world.role("tv")])
    who, start = plan.arrivals("video", watchers, 0.06, EVENING)
    datagrams = rng.random(len(who)) < 0.4
    for on in (datagrams, ~datagrams):
        n = int(on.sum())
        sites = world.popular(rng, n) % 8
        talk = Talk(n)
        chunks = np.minimum(plan.sizes(n, 40, 0.9, 3, 400), 400)
        chunk, period = plan.sizes(n, 3e5, 0.6, 4e4, 1.5e6), rng.uniform(3.0, 9.0, n)
        table = frames.QUIC if on is datagrams else frames.NOISE
        if on is datagrams:
            talk.say(0, plan.template("quic", said.quic_initial, 8))
            talk.say(1, plan.template("quic server", said.quic_handshake), wait=0.002)
        else:
            talks.open_tls(plan, talk, talks.tls_kinds(plan, who[on]), sites)
        for k in range(int(chunks.max(initial=0))):
            wait = np.where(k < 4, 0.1, period * rng.uniform(0.7, 1.3, n))
            size = chunk * rng.lognormal(0.0, 0.25, n)
            if on is datagrams:
                talk.say(0, filler=120, wait=wait, when=chunks > k, table=table)
                talk.say(1, filler=size, wait=0.01, when=chunks > k, table=table)
            else:
                talk.seal(0, 380, wait=wait, when=chunks > k)
                talk.seal(1, size, wait=0.01, when=chunks > k)
        if on is datagrams:
            plan.udp("video", who[on], world.outside[sites], 443, start[on], talk, acks=8)
        else:
            plan.tcp("video", who[on], world.outside[sites], 443, start[on], talk)
    who, start = plan.arrivals("call", world.people, 0.02, OFFICE)
    n = len(who)
    talk = Talk(n)
    shots = plan.sizes(n, 500, 0.8, 50, 1500)
    for k in range(int(shots.max(initial=0))):
        for side in (0, 1):
            head = plan.template(("rtp", side), service.rtp, side)
            talk.say(side, head, filler=rng.integers(90, 1100, n), wait=rng.uniform(0.015, 0.05, n), when=shots > k)
    plan.udp(
        "call", who, world.outside[world.popular(rng, n) % 20], rng.choice([3478, 3480, 8801, 19302], n), start, talk
    )


def _backup(plan: ConnectionPlan) -> None:
    """Upload much data at night, to the file server and to a store outside."""
    world, rng = plan.world, plan.rng
    who, start = plan.arrivals(
        "backup", np.concatenate([world.role("windows", "mac", "linux"), world.inside[:3]]), 0.06, NIGHT
    )
    n = len(who)
    outside = rng.random(n) < 0.6
    talk = Talk(n)
    talks.open_tls(plan, talk, np.full(n, talks.KINDS.index("go")), np.full(n, 5 % len(world.outside)))
    parts = rng.integers(3, 14, n)
    for k in range(14):
        talk.seal(0, plan.sizes(n, 2e6, 0.9, 2e4, 2e7), wait=rng.exponential(1.0, n), when=parts > k)
        talk.seal(1, 180, wait=0.05, when=parts > k)
    target = np.where(outside, world.outside[5 % len(world.outside)], world.inside[FILES])
    target = np.where(target == who, world.outside[5 % len(world.outside)], target)
    plan.tcp("backup", who, target, np.where(outside, 443, 8443), start, talk)


TRANSFERS: dict[str, Callable[[ConnectionPlan], None]] = {
    "ftp": _ftp,
    "files": _files,
    "video": _video,
    "backup": _backup,
}
