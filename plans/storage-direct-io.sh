#!/bin/sh
# Grids of storage that are known by name: sh plans/storage-direct-io.sh DIR [NAME]
#
#   rao11   Rao et al. 2018, Fig. 11: direct and default I/O, 1, 4 and 8 flows
#   xdd     request sizes and queue depths with direct I/O, as XDD's profiler
#   iozone  record sizes through the page cache and past it, synced, as iozone -a
#
# Each leaves NAME.json with every measurement, and the page NAME.html.
set -eu
dir=${1:?which folder is to be measured?}
name=${2:-rao11}
case $name in
rao11) set -- --processes 1,4,8 --io direct,buffered --request 8M --budget 120s ;;
xdd) set -- --request 64K,256K,1M,4M,8M --depth 1,2,4,8,16 --io direct --budget 180s ;;
iozone) set -- --request 64K,256K,1M,4M,16M --depth 1 --io buffered,direct --access sequential,strided --budget 120s ;;
*) echo "storage-direct-io: $name: allowed: rao11, xdd, iozone" >&2; exit 1 ;;
esac
farline storage "$dir" "$@" --json --report "$name.html" >"$name.json"
echo "$name.json, $name.html"
