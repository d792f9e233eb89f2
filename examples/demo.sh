#!/bin/sh
# From packets to alerts: simulate a past and a today, train on the past, detect in today, show alerts and why.
set -eu
netclust="${BIN:-.venv/bin}/netclust"
mkdir -p demo
echo "1. Packets: a simulated morning (9 attack types) and the next one (5 more types, never seen before)."
"$netclust" simulate capture -o demo/past.pcap --labels demo/past.csv --start 2024-01-01T08:00:00Z --hours 4 --seed 1 \
  --campaigns-per-hour 6
"$netclust" simulate capture -o demo/today.pcap --labels demo/today.csv --start 2024-01-02T09:00:00Z --hours 2 --seed 2 \
  --attacks all --campaigns-per-hour 6
echo
echo "2. What the packets say: connections."
"$netclust" flows demo/today.pcap -o demo/today-flows.csv
echo
echo "3. Learn which pairs of connections belong together."
"$netclust" train network demo/past.pcap --labels demo/past.csv --params examples/demo.toml --seed 0 -o demo/model.safetensors
echo
echo "4. Link today's connections, true labels arriving 100 records late."
"$netclust" evaluate network --model demo/model.safetensors --test demo/today.pcap --labels demo/today.csv --protocol stream \
  --feedback gold --delay 100 --window 1000 --mature 600 --alerts 12 --json demo/result.json
echo "The model is in demo/model.safetensors (netclust info shows it), the numbers are in demo/result.json."
echo
echo "5. The same day as the daemon sees it, without any training of ours: the shipped model, warmed up on its first records."
"$netclust" watch demo/today.pcap --json demo/alerts.jsonl > demo/watch.txt
grep "high" demo/watch.txt | grep "closed" | head -5
tail -n 1 demo/watch.txt
echo "All of it is in demo/watch.txt; live: sudo $netclust watch INTERFACE."
echo "To look at this day in a browser, and to answer its alerts: make console (or $netclust watch demo/today.pcap --console)."
