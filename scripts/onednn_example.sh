#!/usr/bin/env bash
# Runs one of oneDNN's own examples, unmodified, on oneDNN and on libnorm: one executable with two
# values of LD_LIBRARY_PATH.
#
#   scripts/onednn_example.sh EXAMPLE HEADERS LIBRARY [LIBNORM]
#
# EXAMPLE   a source file of oneDNN's tree, such as examples/primitives/layer_normalization.cpp; its helper
#           headers come from the same `examples` folder
# HEADERS   colon-separated folders with oneapi/dnnl/dnnl.hpp and the generated dnnl_config.h and
#           dnnl_version.h: an installed oneDNN's `include`, or `include` of the source and of the build
# LIBRARY   the folder with oneDNN's libdnnl.so
# LIBNORM   libnorm.so with the feature onednn-abi (target/onednn-abi/release/libnorm.so by default)
#
# A oneDNN built with SYCL needs a SYCL compiler: set CXX, or use the headers of another build.
set -euo pipefail
case ${1-} in -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 0 ;; esac
[ $# -ge 3 ] || { sed -n '2,/^set/{s/^# \{0,1\}//;/^set/!p}' "$0"; exit 2; }
example=$1 headers=$2 library=$(realpath "$3")
libnorm=$(realpath "${4:-$(dirname "$0")/../target/onednn-abi/release/libnorm.so}")
helpers=$(realpath "${example%%/examples/*}/examples")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$libnorm" "$folder/libdnnl.so.3"
includes=(-isystem "$helpers")
IFS=: read -ra given <<<"$headers"
for include in "${given[@]}"; do includes+=(-isystem "$include"); done
"${CXX:-c++}" -std=c++17 -O1 -fopenmp "${includes[@]}" "$example" -o "$folder/example" \
    -L"$library" -ldnnl -Wl,--allow-shlib-undefined

# A SYCL build of oneDNN finds the processor as an OpenCL device.
[ -e "$library/libintelocl.so" ] && export OCL_ICD_FILENAMES="$library/libintelocl.so"
# The verbose lines show which library ran.
for loaded in "$library" "$folder"; do
    LD_LIBRARY_PATH="$loaded" ONEDNN_VERBOSE=profile_exec "$folder/example" |
        grep -E 'info,(oneDNN|libnorm)|,exec,|Example'
done
