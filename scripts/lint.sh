#!/usr/bin/env bash
# Runs every check, prints the output of those that fail, and fails if one did. What cargo builds
# goes on beside the checks of Python.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=$PWD/.venv
failed=$(mktemp)
trap 'rm -f "$failed"' EXIT

check() {
    local name=$1 output begun=$SECONDS
    shift
    if output=$("$@" 2>&1); then
        echo "lint: $name: ok, $((SECONDS - begun)) s"
    else
        printf '%s\nlint: %s: FAILED, %s s\n' "$output" "$name" $((SECONDS - begun))
        echo "$name" >>"$failed"
    fi
}

rust() {
    check "rustfmt" cargo fmt --all --check
    check "generated files" cargo xtask gen --check
    check "tidy" cargo xtask tidy
    check "clippy" cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
}

rust &
check "ruff" "$venv/bin/ruff" check --quiet .
check "ruff format" "$venv/bin/ruff" format --quiet --check .
check "mypy" "$venv/bin/mypy" --no-error-summary
check "stubtest" "$venv/bin/python" -m mypy.stubtest --concise farline._native
check "features" "$venv/bin/python" scripts/same_features.py
check "layers" "$venv/bin/lint-imports" --no-cache
wait $!

if [[ -s $failed ]]; then
    echo "lint: failed: $(paste -sd ' ' "$failed")" >&2
    exit 1
fi
