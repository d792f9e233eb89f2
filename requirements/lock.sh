#!/bin/sh
# Pin every file of this folder, from pyproject.toml, for Python 3.11.0 and newer; then check that each Python has wheels.
# Needs uv on the PATH (`make lock` brings it).
set -eu
cd "$(dirname "$0")/.."
compile="uv pip compile --quiet --no-header --universal --python-version 3.11.0 pyproject.toml"
all=$(mktemp)
trap 'rm -f "$all"' EXIT

# One choice of versions for all files, so that any of them can be installed beside any other.
$compile --all-extras --group test --group system --group lint --no-annotate --output-file "$all" ${UPGRADE:+--upgrade}

pin() { # NAME OPTION ...
  name=$1
  shift
  # shellcheck disable=SC2086
  $compile --generate-hashes --constraint "$all" --no-annotate "$@" --output-file "requirements/$name.txt" --upgrade
}
tested="--extra cluster --extra offline --extra parquet --extra plot --extra river --extra sklearn --extra zstd --group test"
pin runtime
# shellcheck disable=SC2086
pin test $tested
# shellcheck disable=SC2086
pin system $tested --extra live-portable --group system
# shellcheck disable=SC2086
pin peers $tested --extra bench --extra live-portable
# shellcheck disable=SC2086
pin lint $tested --extra bench --extra live-portable --group system --group lint
pin docs --extra docs --extra plot
pin container --extra cluster --extra river

# A universal lock does not show what has no wheel: ask for each Python by itself.
failed=0
for name in runtime test system peers lint docs container; do
  for python in 3.11.0 3.12 3.13 3.14; do
    if ! uv pip compile --quiet --only-binary :all: --python-version "$python" --python-platform x86_64-manylinux_2_36 \
      --no-header "requirements/$name.txt" > /dev/null; then
      echo "requirements/$name.txt: has no wheels for Python $python"
      failed=1
    fi
  done
done
exit $failed
