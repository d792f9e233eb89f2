#!/bin/sh
# The console on the simulated day of `make demo`, sixty times as fast as it happened, until Ctrl-C.
set -eu
netclust="${BIN:-.venv/bin}/netclust"
mkdir -p demo
if [ ! -s demo/today.pcap ]; then
  "$netclust" simulate capture -o demo/today.pcap --labels demo/today.csv --start 2024-01-02T09:00:00Z --hours 2 --seed 2 \
    --attacks all --campaigns-per-hour 6
fi
exec "$netclust" watch demo/today.pcap --console --pace "${PACE:-60}"
