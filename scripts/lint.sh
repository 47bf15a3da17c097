#!/usr/bin/env bash
# Runs every check, prints the output of those that fail, and fails if one did.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=$PWD/.venv
failed=()

check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "lint: $name: ok"
    else
        printf '%s\nlint: %s: FAILED\n' "$output" "$name"
        failed+=("$name")
    fi
}

# A folder of its own: cargo and maturin give PyO3 different environments, and sharing
# one would rebuild it at every change from one to the other.
clippy() {
    PYO3_PYTHON=$venv/bin/python cargo clippy --workspace --all-targets --locked \
        --target-dir target/lint --quiet -- -D warnings
}

check "rustfmt" cargo fmt --all --check
check "clippy" clippy
check "ruff" "$venv/bin/ruff" check --quiet .
check "ruff format" "$venv/bin/ruff" format --quiet --check .
check "mypy" "$venv/bin/mypy" --no-error-summary
check "stubtest" "$venv/bin/python" -m mypy.stubtest --concise farline._native
check "layers" "$venv/bin/lint-imports" --no-cache
check "generated files" cargo xtask gen --check
check "tidy" cargo xtask tidy

if ((${#failed[@]})); then
    echo "lint: failed: ${failed[*]}" >&2
    exit 1
fi
