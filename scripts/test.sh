#!/usr/bin/env bash
# Runs the tests of both languages; all run even if some fail. Words for pytest go to it alone.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

python_tests() {
    .venv/bin/python -m pytest "$@" || failed+=("pytest")
}

# Most of the Rust tests wait for packets, most of the Python units compute: side by side they take
# as long as the longer. The others have the machine to themselves, for they look at the clock.
rust=
if cargo test --locked --quiet --no-run; then
    cargo test --locked --quiet --no-fail-fast >"$log" 2>&1 &
    rust=$!
else
    failed+=("cargo test")
fi
(($#)) || python_tests tests/unit
if [[ $rust ]]; then
    echo "test: what the Rust tests said:"
    wait "$rust" || failed+=("cargo test")
    cat "$log"
fi
if (($#)); then
    python_tests "$@"
else
    python_tests --ignore tests/unit
fi

if ((${#failed[@]})); then
    echo "test: failed: ${failed[*]}" >&2
    exit 1
fi
echo "test: all passed"
