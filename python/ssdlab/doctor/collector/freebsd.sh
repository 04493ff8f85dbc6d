#!/bin/sh
# Collects what `ssdlab doctor --recorded FILE` judges on another machine. It only reads.
# As root it collects more: tunefs, the drives' health.
# Usage: sh collect.sh [PATH|DEVICE] > FILE
export LC_ALL=C
target=${1:-.}
case $target in
/dev/*) ;;
*)
    directory=$target
    [ -d "$directory" ] || directory=$(dirname -- "$target")
    target=$(cd -P -- "$directory" && pwd) || exit 2
    ;;
esac
run() { # COMMAND ARGUMENT...
    command -v "$1" >/dev/null 2>&1 || return 0
    printf '=run %s\n' "$*"
    "$@" 2>/dev/null </dev/null | sed 's/^/ /'
}
printf '=ssdlab-collector 1 freebsd\n=target %s\n=user %s\n=kernel %s\n' \
    "$target" "$(id -u)" "$(uname -r)"
run mount -p
run df -k
run swapinfo -k
run sysctl -n hw.physmem
run sysctl -n kern.geom.confxml
run sysctl kern.cam
run gstat -b -d -I 1s
mount -p -t ufs | while read -r node _; do run tunefs -p "$node"; done
for disk in $(sysctl -n kern.disks); do
    run diskinfo -v "$disk"
    run smartctl --json -x "/dev/$disk"
done
run zpool status -t -LP
run zpool get -Hpo name,property,value autotrim
for pool in $(zpool list -H -o name 2>/dev/null); do run zdb -C "$pool"; done
for dataset in $(zfs list -H -o name 2>/dev/null); do
    run zfs get -Hpo property,value sync,compression,primarycache,logbias,recordsize,atime "$dataset"
done
echo "=end"
