#!/usr/bin/env bash
# Makes .venv ready: locked packages, the extension, the farline command. What is up to date already
# is left alone, so a second call takes no time. The word says which build of the extension is wanted:
#   release    for use and for speeds; without a word too
#   dev        the profile `dev`: checks its own arithmetic, is slow, and is built again in seconds
#   any        the kind that is there, brought up to date; release if there is none
#   present    whatever is there, as it is; release if there is none
#   packages   none: the packages alone
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
target=${CARGO_TARGET_DIR:-$root/target}
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

# What is there: `dev` or `release` if it is whole, and the checksum of what it was made from.
installed_kind() {
    local kind sum
    [[ -x $venv/bin/farline && -f $stamp ]] && compgen -G "$root/python/farline/_native*.so" >/dev/null || return 0
    read -r kind sum <"$stamp" || true
    [[ -z $sum ]] || echo "$kind $sum"
}

build_extension() {
    local stamp=$venv/.farline-extension kind=$1 sum have
    have=$(installed_kind)
    [[ $kind == present && -n $have ]] && return
    [[ $kind != any ]] || { [[ $have == dev\ * ]] && kind=dev || kind=release; }
    [[ $kind != present ]] || kind=release
    sum=$(native_sources | checksum)
    [[ $have == "$kind $sum" ]] && return
    check_toolchain
    # What pyproject.toml says of commands and entry points is installed, not looked up.
    [[ $stamp -nt $root/pyproject.toml ]] || have=
    rm -f "$stamp"
    if [[ $kind == dev && -n $have ]]; then
        replace_extension
    else
        install_editable "$kind"
    fi
    echo "$kind $sum" >"$stamp"
}

# The farline command and the extension.
install_editable() {
    local profile=$1
    echo "setup: building the extension ($profile); the first time takes minutes" >&2
    # Without isolation a rebuild needs no network: maturin is among the locked packages.
    (cd "$root" && MATURIN_PEP517_ARGS="--profile $profile" PATH=$venv/bin:$PATH "$venv/bin/python" \
        -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .)
}

# The extension alone, where everything else is there: in seconds after an edit.
replace_extension() {
    local place=$root/python/farline/_native.abi3.so
    (cd "$root" && cargo build --quiet --locked --package farline-py)
    # Programs that run now keep the file that they have.
    cp "$target/debug/lib_native.so" "$place.new"
    mv "$place.new" "$place"
}

# Start-up is quick only from bytecode, and the environment may forbid writing it later.
compile_bytecode() {
    "$venv/bin/python" -m compileall -q "$root/python/farline"
}

wanted=${1:-release}
[[ $wanted =~ ^(release|dev|any|present|packages)$ ]] ||
    fail "$wanted is none of release, dev, any, present, packages"
command -v flock >/dev/null || check_toolchain
exec 9<"$root"
flock 9
[[ -x $venv/bin/farline ]] || check_toolchain
install_packages
[[ $wanted == packages ]] && exit
build_extension "$wanted"
compile_bytecode
