#!/usr/bin/env bash
# Runs the tests of both languages; both run even if the first fails.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
failed=()

cargo test --locked --quiet || failed+=("cargo test")
.venv/bin/python -m pytest "$@" || failed+=("pytest")

if ((${#failed[@]})); then
    echo "test: failed: ${failed[*]}" >&2
    exit 1
fi
echo "test: all passed"
