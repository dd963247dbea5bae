#!/usr/bin/env bash
# Compares the bits of the neon and portable levels on aarch64, under qemu-user, with those of this machine's portable
# level. Needs the Rust target aarch64-unknown-linux-gnu, its linker and qemu-aarch64.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-target}
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
cargo build --release -p libnorm --example digest
# How far the kernels are optimised does not show in their bits; in how long that takes it does.
cargo build --release --config 'profile.release.package.libnorm.opt-level=1' -p libnorm --example digest \
    --target aarch64-unknown-linux-gnu
here=$("$out/release/examples/digest" portable | cut -d' ' -f2-)
lines=$(wc -l <<<"$here")
for level in portable neon; do
    there=$(qemu-aarch64 -L /usr/aarch64-linux-gnu \
        "$out/aarch64-unknown-linux-gnu/release/examples/digest" "$level" | cut -d' ' -f2-)
    if [ "$here" != "$there" ]; then
        echo "the bits of $level on aarch64 differ:"
        diff <(echo "$here") <(echo "$there") | head -20
        exit 1
    fi
    echo "$level on aarch64: $lines digests equal those of portable on $(uname -m)"
done
