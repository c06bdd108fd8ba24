#!/bin/sh
# Optimise a black box that is not Python: here an awk program, but any command that prints a number will do.
#
#     sh examples/shell/optimise.sh [TRIALS] [FOLDER]
#
# A trial takes two calls of bkbopt, each of them a second or more, most of which goes into starting Python and torch.
# The state is one file, FOLDER/pump.bkb. Stop at any time and run again: it goes on where it was.
set -eu
trials=${1:-30}
out=${2:-out/shell}
here=$(cd "$(dirname "$0")" && pwd)
state=$out/pump.bkb
mkdir -p "$out"
[ -e "$state" ] || bkbopt init "$here/space.toml" "$state"

done=$(bkbopt show "$state" --trials | wc -l)
while [ "$done" -lt "$trials" ]; do
    trial=$(bkbopt ask "$state") # {"id": 0, "params": {"speed": 1234.5, ...}}
    id=$(printf '%s\n' "$trial" | sed 's/^{"id": \([0-9]*\),.*/\1/')
    if cost=$(printf '%s\n' "$trial" | awk -v seed="$id" -f "$here/pump.awk"); then
        bkbopt tell "$state" "$id" "$cost"
    else
        bkbopt fail "$state" "$id"
    fi
    done=$((done + 1))
done

bkbopt best "$state"
bkbopt plot "$state" "$out/pump.png"
