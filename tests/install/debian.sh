#!/usr/bin/env bash
# Builds the Debian packages, installs them with dpkg into a separate root, builds and runs programs with the
# installed files, and removes the packages again.
#
#   tests/install/debian.sh
#
# Needs the tools of tests/install/run, and debhelper.
set -euo pipefail
case ${1-} in
    "") ;;
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;;
    *) echo "tests/install/debian.sh has no options" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
unset LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH

fail() { echo "tests/install/debian.sh: $*" >&2; exit 1; }
packages=${CARGO_TARGET_DIR:-target}/debian
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make -s deb >"$work/log" 2>&1 || { cat "$work/log"; fail "make deb fails"; }
root=$work/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
: >"$root/var/lib/dpkg/status"
# libc6 is not in this root. No package has a script, so dpkg needs no programs there.
dpkg=(dpkg --root="$root" --log=/dev/null --force-depends --force-not-root)
"${dpkg[@]}" -i "$packages"/*.deb >"$work/log" 2>&1 || { cat "$work/log"; fail "dpkg cannot install them"; }

libdir=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
for program in c cmake; do
    mkdir "$work/$program"
    tests/install/$program/run "$root/usr" "$libdir" "$work/$program" >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "the $program program fails"; }
done
"$root/usr/bin/benchdnn" --flags=CM 8x64 | grep ':PASSED ' || fail "the packaged benchdnn fails"
"${dpkg[@]}" -L libnorm0 | grep '/libnorm.so\.' || fail "libnorm0 has no library"
dpkg-deb -f "$packages"/libnorm0_*.deb Depends | grep 'libc6' || fail "libnorm0 does not depend on libc6"
dpkg-deb -f "$packages"/libnorm-dev_*.deb Depends | grep 'libnorm0 (= ' || fail "libnorm-dev does not depend on libnorm0"

"${dpkg[@]}" --purge benchdnn libnorm-dev libnorm0 >/dev/null
left=$(find "$root/usr" ! -type d 2>/dev/null || true)
[ -z "$left" ] || fail "left after dpkg --purge: $left"
