#!/usr/bin/env bash
# Checks that the neon and portable levels on aarch64, run under qemu-user, give the same bits as this machine's
# portable level.
#
#   scripts/neon.sh
#
# Needs the Rust target aarch64-unknown-linux-gnu, its linker (aarch64-linux-gnu-gcc) and qemu-aarch64.
set -euo pipefail
case ${1-} in
    "") ;;
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;;
    *) echo "neon.sh has no options" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-target}
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# With the features that dependencies have in the workspace, in which they may have been compiled.
cargo build --release --workspace --example digest
cargo build --release --workspace --example digest --target aarch64-unknown-linux-gnu
# Each emulated program uses one core.
digests() { "$@" | cut -d' ' -f2-; }
levels=(portable neon)
pids=()
for level in "${levels[@]}"; do
    digests qemu-aarch64 -L /usr/aarch64-linux-gnu "$out/aarch64-unknown-linux-gnu/release/examples/digest" "$level" \
        >"$out/digests-$level.txt" &
    pids+=($!)
done
here=$(digests "$out/release/examples/digest" portable)
lines=$(wc -l <<<"$here")
for at in "${!levels[@]}"; do
    level=${levels[at]}
    wait "${pids[at]}"
    there=$(<"$out/digests-$level.txt")
    if [ "$here" != "$there" ]; then
        echo "the bits of $level on aarch64 differ:"
        diff <(echo "$here") <(echo "$there") | head -20
        exit 1
    fi
    echo "$level on aarch64: $lines digests equal those of portable on $(uname -m)"
done
