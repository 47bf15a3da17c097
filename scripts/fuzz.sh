#!/usr/bin/env bash
# Runs a fuzz target under libFuzzer with AddressSanitizer: TARGET (all of them without one), SECONDS_EACH (60).
# Needs cargo-fuzz, and a nightly compiler, or any with RUSTC_BOOTSTRAP=1.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${SECONDS_EACH:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || {
    echo "fuzz: SECONDS is '$seconds'; give whole seconds, such as SECONDS=600" >&2
    exit 1
}
mapfile -t targets < <(cd fuzz/fuzz_targets && printf '%s\n' *.rs | sed 's/\.rs$//')
if [[ -n ${TARGET:-} ]]; then
    [[ " ${targets[*]} " == *" $TARGET "* ]] || {
        echo "fuzz: there is no target '$TARGET'; there are ${targets[*]}" >&2
        exit 1
    }
    targets=("$TARGET")
fi
command -v cargo-fuzz >/dev/null || {
    echo "fuzz: cargo-fuzz is missing: cargo install cargo-fuzz" >&2
    exit 1
}

compiler=(cargo)
if rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
    compiler+=(+nightly)
else
    export RUSTC_BOOTSTRAP=1
fi

# What a target begins with, written by the code that reads it, so that it follows every change of a message.
write_seeds() {
    local seeds=fuzz/seeds/$1
    case $1 in
    copy_sink) cargo run --quiet --locked -p farline-mover --features fuzzing --example copy_sink_seeds -- "$seeds" ;;
    seal) cargo run --quiet --locked -p farline-session --features fuzzing --example seal_seeds -- "$seeds" ;;
    *) mkdir -p "$seeds" ;;
    esac
}

failed=()
for target in "${targets[@]}"; do
    write_seeds "$target"
    mkdir -p "fuzz/corpus/$target"
    echo "fuzz: $target for $seconds s"
    "${compiler[@]}" fuzz run --fuzz-dir fuzz "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 ||
        failed+=("$target")
done
if ((${#failed[@]})); then
    echo "fuzz: failed: ${failed[*]}; what did it is in fuzz/artifacts" >&2
    exit 1
fi
echo "fuzz: all clean"
