#!/bin/sh
# Optimise a black box that is not Python: here an awk program, but any command that prints a number will do.
#
#     sh examples/shell/optimise.sh [TRIALS] [FOLDER]
#
# The log is one file, FOLDER/pump.db. Stop at any time and run again: it goes on where it was. Meanwhile, elsewhere:
# bkbopt watch FOLDER/pump.db
set -eu
trials=${1:-30}
out=${2:-out/shell}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"

bkbopt run "$here/space.toml" --storage "$out/pump.db" --trials "$trials" --jobs 2 -- \
    awk -v speed={speed} -v impeller={impeller} -v stages={stages} -v blades={blades} -v head={head} -f "$here/pump.awk"
bkbopt export "$out/pump.db" "$out/pump.csv"
bkbopt plot "$out/pump.db" "$out/pump.png"
