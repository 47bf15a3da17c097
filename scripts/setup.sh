#!/usr/bin/env bash
# Makes .venv ready: locked packages, the extension built in release, the farline
# command. What is up to date already is left alone, so a second call takes no time.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
unset PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH

fail() {
    echo "setup: $1" >&2
    exit 1
}

# Each missing tool is one line that says what to install.
check_toolchain() {
    command -v flock >/dev/null || fail "flock is missing: apt install util-linux"
    command -v cc >/dev/null || fail "a C compiler is missing: apt install build-essential"
    command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.85 or later with rustup"
    local rust
    rust=$(cargo --version) || fail "cargo does not run: install Rust 1.85 or later with rustup"
    rust=${rust#cargo }
    rust=${rust%%[ -]*}
    printf '1.85\n%s\n' "$rust" | sort -CV || fail "Rust $rust is too old: install 1.85 or later with rustup"
}

find_python() {
    python=${PYTHON:-python3}
    command -v "$python" >/dev/null || fail "$python is missing: apt install python3 python3-venv"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$python is older than 3.11: install Python 3.11 or later, or name one with PYTHON=..."
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python cannot make virtual environments: apt install python3-venv"
}

# Prints one checksum over the files whose names come on standard input, names included.
checksum() {
    (cd "$root" && sort | xargs -d '\n' sha256sum | sha256sum | cut -d ' ' -f 1)
}

install_packages() {
    local stamp=$venv/.farline-packages wanted
    wanted=$(echo requirements.lock | checksum)
    [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]] && return
    find_python
    echo "setup: installing the locked Python packages into .venv" >&2
    [[ -x $venv/bin/python ]] || "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        -r "$root/requirements.lock"
    echo "$wanted" >"$stamp"
}

# Every file that the extension is made from. xtask is not one of them.
native_sources() {
    (cd "$root" && find crates Cargo.toml Cargo.lock pyproject.toml -type f \
        \( -name '*.rs' -o -name '*.toml' -o -name Cargo.lock \) -not -path '*/tests/*')
}

build_extension() {
    local stamp=$venv/.farline-extension wanted
    wanted=$(native_sources | checksum)
    [[ -x $venv/bin/farline && -f $stamp && $(<"$stamp") == "$wanted" ]] &&
        compgen -G "$root/python/farline/_native*.so" >/dev/null && return
    check_toolchain
    echo "setup: building the extension in release; the first time takes minutes" >&2
    rm -f "$stamp"
    # Without isolation a rebuild needs no network: maturin is among the locked packages.
    (cd "$root" && PATH=$venv/bin:$PATH "$venv/bin/python" -m pip install --quiet \
        --disable-pip-version-check --no-deps --no-build-isolation --editable .)
    echo "$wanted" >"$stamp"
}

# Start-up is quick only from bytecode, and the environment may forbid writing it later.
compile_bytecode() {
    "$venv/bin/python" -m compileall -q "$root/python/farline"
}

command -v flock >/dev/null || check_toolchain
exec 9<"$root"
flock 9
[[ -x $venv/bin/farline ]] || check_toolchain
install_packages
[[ ${1:-} == packages ]] && exit
build_extension
compile_bytecode
