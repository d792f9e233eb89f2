#!/bin/sh
# Train on a simulated past, detect in a simulated today, show alerts, the confusion table and the rate.
set -eu
netclust="${BIN:-.venv/bin}/netclust"
mkdir -p demo
echo "1. A simulated past (one day, 10 attack types) and a simulated today (4 more types, never seen before)."
"$netclust" simulate records -o demo/past.txt --records 40000 --seed 1 --day 0
"$netclust" simulate records -o demo/today.txt --records 20000 --seed 2 --day 1 --attacks all --attack-share 0.1
echo
echo "2. Learn which pairs of records belong together."
"$netclust" train network demo/past.txt --params examples/demo.toml --seed 0 -o demo/model.safetensors
echo
echo "3. Link today's records, true labels arriving 100 records late."
"$netclust" evaluate network --model demo/model.safetensors --test demo/today.txt --protocol stream \
  --feedback gold --delay 100 --window 1000 --mature 600 --alerts 12 --json demo/result.json
echo "The model is in demo/model.safetensors (netclust info shows it), the numbers are in demo/result.json."
