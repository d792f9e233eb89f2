"""The commands that simulate records and captures, and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from netclust.options.common_options import SeedOption
from netclust.options.groups import simulate


@simulate.command("records")
def simulate_records(
    output: Annotated[
        str, typer.Option("-o", "--output", help="The file to write (.gz or .xz packs it; - for output).")
    ],
    records: Annotated[int, typer.Option(min=1, help="How many records.")] = 20_000,
    seed: SeedOption = 0,
    day: Annotated[int, typer.Option(min=0, help="Which day: the benign mix drifts from day to day.")] = 0,
    attacks: Annotated[
        str,
        typer.Option(help="known, all (with the types held back from training), none, or names with commas."),
    ] = "known",
    attack_share: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of attack records.")] = 0.2,
) -> None:
    """Write a labelled stream in the NSL-KDD format, from class profiles. Synthetic: not a measure of anything real."""
    from netclust.datasets.simulators.run_simulators import run_record_simulator as run

    run(output, records, seed, day, attacks, attack_share)


@simulate.command("capture")
def simulate_capture(
    output: Annotated[str, typer.Option("-o", "--output", help="The pcap file to write (.gz or .xz packs it).")],
    labels: Annotated[str | None, typer.Option(help="A CSV file for one line a connection.")] = None,
    hours: Annotated[float, typer.Option(help="How long the capture is; a day of 40 hosts is about 1.3 GB.")] = 0.25,
    seed: SeedOption = 0,
    attacks: Annotated[
        str,
        typer.Option(help="known, all (with the types held back from training), none, or names with commas."),
    ] = "known",
    scale: Annotated[float, typer.Option(help="Multiplies the rate of benign sessions.")] = 1.0,
    hosts: Annotated[int, typer.Option(help="How many inside hosts.")] = 40,
    clients: Annotated[str, typer.Option(help="The inside network.")] = "10.20.0.0/24",
    servers: Annotated[str, typer.Option(help="The outside network.")] = "198.18.0.0/15",
    start: Annotated[str | None, typer.Option(help="Time of the first packet; else midnight of the day.")] = None,
    day: Annotated[int, typer.Option(help="Which day: day 0 is Monday 2024-01-01; habits drift.")] = 0,
    snaplen: Annotated[int, typer.Option(help="Cut bulk data at so many bytes; 0 keeps all.")] = 200,
    campaigns_per_hour: Annotated[float, typer.Option(help="How many attack campaigns start in an hour.")] = 1.5,
) -> None:
    """Write a labelled packet capture of a simulated office. Synthetic: not a measure of anything real."""
    from netclust.datasets.simulators.run_simulators import run_capture_simulator as run

    run(
        output, labels, hours=hours, seed=seed, attacks=attacks, scale=scale, hosts=hosts, clients=clients,
        servers=servers, start=start, day=day, snaplen=snaplen, campaigns_per_hour=campaigns_per_hour,
    )  # fmt: skip
