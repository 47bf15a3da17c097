#!/usr/bin/env bash
# Builds the programs that `farline copy --bootstrap` sends to other hosts: static, for any Linux of their processor,
# into python/farline/tools/carried. Words are processors (x86_64, aarch64); without any, this machine's.
# Needs rustup's target for each, musl-tools for x86_64, gcc-aarch64-linux-gnu for aarch64.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=python/farline/tools/carried

fail() {
    echo "carried: $1" >&2
    exit 1
}

# Compiler for the little C that a library brings, and linker.
tools() {
    case $1 in
    x86_64)
        command -v musl-gcc >/dev/null || fail "musl-gcc is missing: apt install musl-tools"
        export CC_x86_64_unknown_linux_musl=musl-gcc
        ;;
    aarch64)
        command -v aarch64-linux-gnu-gcc >/dev/null ||
            fail "aarch64-linux-gnu-gcc is missing: apt install gcc-aarch64-linux-gnu"
        export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc
        # No call into a library of the C compiler, which this target lacks.
        export CFLAGS_aarch64_unknown_linux_musl=-mno-outline-atomics
        ;;
    *) fail "no program for the processor '$1'; there are x86_64, aarch64" ;;
    esac
}

(($#)) || set -- "$(uname -m)"
mkdir -p "$folder"
for machine in "$@"; do
    tools "$machine"
    target=$machine-unknown-linux-musl
    rustup target list --installed 2>/dev/null | grep -qx "$target" || rustup --quiet target add "$target"
    cargo build --quiet --locked --profile carried --target "$target" --package farline-carried
    cp "${CARGO_TARGET_DIR:-target}/$target/carried/farline-carried" "$folder/linux-$machine.new"
    mv "$folder/linux-$machine.new" "$folder/linux-$machine"
    echo "$folder/linux-$machine"
done
