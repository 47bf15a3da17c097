#!/usr/bin/env bash
# Runs the tests of both languages; all run even if some fail. Words for pytest run those Python tests alone.
#
# Most tests wait, for packets, ends or times; so lanes run side by side, and each says what it has to
# say when it is over. What measures (marker `alone`) comes last and has the machine to itself.
set -uo pipefail
# Each lane is a process group: it can be interrupted as a whole, and starts with SIGINT as usual.
set -m

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
pytest=(.venv/bin/python -m pytest)
logs=$(mktemp -d)
failed=()
declare -A names=() # of lanes by process number
trap stop EXIT

# What runs still, where somebody interrupts this, ends as at a terminal.
stop() {
    local pid
    for pid in "${!names[@]}"; do
        kill -INT -- "-$pid"
    done
    wait
    rm -rf "$logs"
}

# Starts a lane: its name, then its command.
lane() {
    local name=$1
    shift
    "$@" >"$logs/$name" 2>&1 &
    names[$!]=$name
}

# Whether one of the lanes named runs still; any, where none is named.
runs() {
    (($#)) || { ((${#names[@]})) && return; return 1; }
    local one
    for one in "${names[@]}"; do
        [[ " $* " == *" $one "* ]] && return
    done
    return 1
}

# Prints what lanes said, each as it ends, until those named have, or all.
await() {
    local pid code
    while runs "$@"; do
        wait -n -p pid "${!names[@]}"
        code=$?
        cat "$logs/${names[$pid]}"
        close "${names[$pid]}" "$code"
        unset "names[$pid]"
    done
}

# One line about a part that is over: its name and its exit code. Nothing to collect (5) is no failure.
close() {
    local word=ok
    (($2 == 0 || $2 == 5)) || { word=FAILED && failed+=("$1"); }
    echo "test: $1: $word, at $SECONDS s"
}

finish() {
    if ((${#failed[@]})); then
        echo "test: failed: ${failed[*]}" >&2
        exit 1
    fi
    echo "test: all passed"
    exit
}

if (($#)); then
    "${pytest[@]}" "$@"
    close pytest $?
    finish
fi

computing=(tests/unit)
[[ ! -d tests/contract ]] || computing+=(tests/contract)
scripts/rust_tests.sh
close "building the Rust tests" $?
# Computing gives way to what must keep time. Many Rust tests do: beside them nothing else waits for packets.
lane units nice -n 5 "${pytest[@]}" -o timeout=300 -n "$(nproc)" --dist worksteal "${computing[@]}"
if ((${#failed[@]} == 0)); then
    RUST_TEST_THREADS=$((2 * $(nproc))) cargo test --locked --quiet --no-fail-fast --tests \
        --workspace --exclude farline-sim --exclude farline-py
    close rust $?
    lane simulator nice -n 10 cargo test --locked --quiet --no-fail-fast --tests -p farline-sim
fi
# Side by side a test takes longer than alone. Those that keep an emulated line's time go before those that do not: all at
# once would wait for a CPU more than for their packets.
together=(-m "not alone" -o timeout=300)
lane netns "${pytest[@]}" "${together[@]}" -n 2 --dist loadfile tests/netns
lane interop "${pytest[@]}" "${together[@]}" tests/interop
await netns interop
lane loopback "${pytest[@]}" "${together[@]}" -n 2 --dist loadfile tests/loopback
lane browser "${pytest[@]}" "${together[@]}" tests/browser
await
"${pytest[@]}" -m alone tests/loopback tests/browser tests/netns tests/interop
close alone $?
finish
