#!/bin/sh
# The demo's job on the real NSL-KDD files, if they are here.
set -eu
netclust="${BIN:-.venv/bin}/netclust"
data="${NETCLUST_DATA:-../shared/datasets}/nsl-kdd"
if [ ! -d "$data" ]; then
  echo "The NSL-KDD files are not at $data. Set NETCLUST_DATA to the folder that holds nsl-kdd/KDDTrain+.txt.xz" >&2
  echo "and nsl-kdd/KDDTest+.txt.xz (or .txt, .gz, .zip)." >&2
  exit 2
fi
mkdir -p demo
"$netclust" train network "$data/KDDTrain+.txt.xz" --params thesis --seed 0 -o demo/nsl-kdd.safetensors
"$netclust" evaluate network --model demo/nsl-kdd.safetensors --test "$data/KDDTest+.txt.xz" --protocol thesis \
  --feedback gold --delay 100 --window 100 --alerts 12 --json demo/nsl-kdd.json
