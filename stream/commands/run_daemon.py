"""`netclust run` and `netclust check-config`."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

from netclust.errors import InputError
from netclust.options.output import counted, echo, output_note
from netclust.stream.bus.addresses import parse_bus_url
from netclust.stream.config import ShipConfig, load_config
from netclust.stream.daemon.build import check_config, model_name, state_dir
from netclust.stream.daemon.service import Daemon
from netclust.stream.logs import Log


def run_daemon_check(path: Path) -> None:
    """Say whether the daemon would start with it."""
    config = load_config(path)
    try:
        model = check_config(config)
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    for warning in config.old_spellings:
        output_note(f"{path}: {warning}")
    echo(f"{path}: good")
    echo(f"  sources: {', '.join(f'{s.name} ({s.kind})' for s in config.sources)}")
    echo(f"  sinks:   {', '.join(f'{s.name} ({s.kind})' for s in config.sinks) or 'none but the store'}")
    ship = [f"{what} to {parse_bus_url(url)}" for what, url in _shipped(config.ship).items() if url]
    echo(f"  ship:    {', '.join(ship) or 'nothing'}")
    echo(f"  model:   {model_name(config)}, schema {model.encoding.schema.name}, {len(model.reference):,} references")
    echo(f"  state:   {state_dir(config)}")
    echo(f"  http:    {config.http.listen or 'none'}")


def _shipped(ship: ShipConfig) -> dict[str, str]:
    lanes = counted(ship.partitions, "partition")
    return {f"records ({lanes})": ship.url, "verdicts": ship.verdicts_url}


def run_daemon(path: Path) -> int:
    """Run the daemon until it is told to stop; its exit code."""
    config = load_config(path)
    daemon = Daemon(config, path=path, log=Log(config.log.format, config.log.level))
    obey_signals(daemon)
    daemon.open()
    return daemon.run()


def obey_signals(daemon: Daemon) -> None:
    """TERM and INT stop it, HUP reloads, USR1 reopens logs."""

    def on(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            daemon.reloader.request()
        elif number == signal.SIGUSR1:
            daemon.reopen_logs()
        else:
            daemon.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, on)
