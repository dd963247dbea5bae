#!/usr/bin/env bash
# Installs with cargo-c into a fresh prefix, as docs/installing.md says, and builds and runs C and C++ programs with the
# installed files. Without cargo-c it does nothing.
#
#   tests/install/cargo_c.sh
#
# The variable CARGOFLAGS is for cargo, as in tests/install/run, whose tools it needs.
set -euo pipefail
case ${1-} in
    "") ;;
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;;
    *) echo "tests/install/cargo_c.sh has no options" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
unset LD_LIBRARY_PATH PKG_CONFIG_PATH
command -v cargo-cinstall >/dev/null ||
    { echo "skipped: there is no cargo-c here" | tee -a "${NORM_SKIPPED:-/dev/null}"; exit 0; }

fail() { echo "tests/install/cargo_c.sh: $*" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
soname=libnorm.so.${version%%.*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

read -ra command <<<"$(sed -n '/^cargo cinstall /{s| --prefix .*||p;q}' docs/installing.md) ${CARGOFLAGS-}"
"${command[@]}" --prefix "$prefix" --libdir lib >"$work/log" 2>&1 || { cat "$work/log"; fail "${command[*]} fails"; }

readelf -d "$prefix/lib/$soname" | grep "soname: \[$soname\]" >/dev/null || fail "the library has another SONAME"
for link in "$soname" libnorm.so; do
    [ "$(readlink -f "$prefix/lib/$link")" = "$prefix/lib/libnorm.so.$version" ] || fail "$link leads elsewhere"
done
nm -D --defined-only "$prefix/lib/$soname" | sed 's/.* //' | LC_ALL=C sort >"$work/symbols"
LC_ALL=C sort tests/symbols/libnorm.txt | diff "$work/symbols" - || fail "the library exports other symbols"
diff -r include "$prefix/include" || fail "the headers are others"
PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --exact-version "$version" norm || fail "norm.pc has another version"
mkdir "$work/c"
tests/install/c/run "$prefix" "$prefix/lib" "$work/c" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "the C programs fail"; }
echo "installed $version with cargo-c"
