#!/bin/sh
# Collects what `ssdlab doctor --recorded FILE` judges on another machine. It only reads.
# As root it collects more: the drives' health, device-mapper tables.
# Usage: sh collect.sh [PATH|DEVICE] > FILE
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin
export PATH LC_ALL=C
target=${1:-.}
case $target in
/dev/*) ;;
*)
    directory=$target
    [ -d "$directory" ] || directory=$(dirname -- "$target")
    directory=$(cd -P -- "$directory" && pwd) || exit 2
    target=$directory
    ;;
esac

file() { # PATH: its text, at most 64 KiB
    [ -f "$1" ] && [ -r "$1" ] || return 0
    text=$(head -c 65536 "$1" 2>/dev/null | tr -d '\000') || return 0
    [ -n "$text" ] || return 0
    printf '=file %s\n' "${1#/}"
    printf '%s\n' "$text" | sed 's/^/ /'
}
link() { # PATH [TARGET]
    [ -L "$1" ] || return 0
    printf '=link %s\n %s\n' "${1#/}" "${2:-$(readlink "$1")}"
}
run() { # COMMAND ARGUMENT...
    command -v "$1" >/dev/null 2>&1 || return 0
    printf '=run %s\n' "$*"
    "$@" 2>/dev/null </dev/null | tr -d '\000' | sed 's/^/ /'
}

printf '=ssdlab-collector 1 linux\n=target %s\n=user %s\n=kernel %s\n' \
    "$target" "$(id -u)" "$(uname -r)"
for path in /proc/self/mountinfo /proc/swaps /proc/meminfo /proc/fs/ext4/*/options \
    /etc/fstab /etc/lvm/lvm.conf /etc/cron.weekly/fstrim /etc/cron.d/zfsutils-linux \
    /sys/module/raid456/parameters/devices_handle_discard_safely \
    /sys/class/scsi_host/*/proc_name /sys/class/ata_link/*/sata_spd \
    /sys/class/ata_link/*/hw_sata_spd_limit; do
    file "$path"
done
link /etc/systemd/system/fstrim.timer
link /etc/systemd/system/timers.target.wants/fstrim.timer
[ -d /run/systemd/system ] && echo "=dir run/systemd/system"
for member in /sys/fs/btrfs/*/devices/*; do link "$member"; done

disks=
for entry in /sys/class/block/*; do
    [ -e "$entry" ] || continue
    real=$(cd -P "$entry" && pwd) || continue
    number=$(cat "$real/dev")
    printf '=link %s\n %s\n=link sys/dev/block/%s\n %s\n' "${entry#/}" "$real" "$number" "$real"
    for name in dev size start partition ro removable alignment_offset stat nuse serial \
        queue/rotational queue/logical_block_size queue/physical_block_size queue/scheduler \
        queue/write_cache queue/fua queue/discard_max_bytes queue/discard_max_hw_bytes \
        queue/discard_granularity queue/optimal_io_size queue/zoned \
        queue/write_zeroes_unmap_max_bytes device/model device/name device/vendor device/serial \
        device/firmware_rev device/rev device/fwrev device/transport device/raid_level \
        dm/name dm/uuid md/level md/degraded md/sync_action md/metadata_version md/component_size \
        loop/backing_file loop/dio; do
        file "$real/$name"
    done
    for path in "$real"/device/scsi_disk/*/provisioning_mode \
        "$real"/device/scsi_disk/*/cache_type "$real"/device/hwmon*/temp1_* \
        "$real"/device/hwmon/hwmon*/temp1_* "$real"/hwmon*/temp1_*; do
        file "$path"
    done
    for path in "$real"/slaves/* "$real"/holders/*; do
        [ -L "$path" ] && link "$path" "$(cd -P "$path" && pwd)"
    done
    above=${real%/*}
    while [ "${above#/sys/devices/}" != "$above" ]; do
        for name in idVendor idProduct speed current_link_speed current_link_width \
            max_link_speed max_link_width; do
            file "$above/$name"
        done
        [ -L "$above/driver" ] && link "$above/driver"
        for path in "$above"/link*/dev*/ata_device/dev*/trim; do file "$path"; done
        above=${above%/*}
    done
    [ -f "$real/partition" ] || [ -z "$(ls "$real/slaves" 2>/dev/null)" ] || continue
    [ -f "$real/partition" ] || disks="$disks /dev/${entry##*/}"
done

while read -r _ _ _ _ point _; do
    point=$(printf '%b' "$point")
    run stat -f -c '%S %b %a' "$point"
done </proc/self/mountinfo

run dmsetup table
run smartctl --json --scan-open
for disk in $disks; do
    case $disk in /dev/loop* | /dev/ram* | /dev/zram* | /dev/dm-* | /dev/md*) continue ;; esac
    run smartctl --json -x "$disk"
    case $disk in /dev/nvme*)
        run nvme id-ctrl "$disk" -o json
        run nvme get-feature "$disk" -f 6 -o json
        run nvme ocp smart-add-log "$disk" -o json
        run nvme endurance-log "$disk" --group-id=1 -o json
        ;;
    esac
done
smartctl --scan-open 2>/dev/null | while read -r node _ kind _; do
    case $kind in *megaraid* | *cciss* | *aacraid* | *areca* | *3ware* | *sssraid*)
        run smartctl --json -x -d "$kind" "$node"
        ;;
    esac
done
numbered() { # DISK: the drives of a Smart Array, from number 0 to the first that does not exist
    number=0
    while smartctl -i -d "cciss,$number" "$1" 2>/dev/null | grep -qi '^serial number'; do
        run smartctl --json -x -d "cciss,$number" "$1"
        number=$((number + 1))
    done
}
host() { # DISK: the number of its SCSI host
    path=$(cd -P "/sys/class/block/${1#/dev/}/device" 2>/dev/null && pwd)
    path=${path##*/}
    echo "${path%%:*}"
}
for disk in $disks; do
    number=$(host "$disk")
    case $(cat "/sys/class/scsi_host/host$number/proc_name" 2>/dev/null) in
    hpsa | cciss | smartpqi) numbered "$disk" ;;
    aacraid)
        for controller in 1 2 3 4; do arcconf GETCONFIG "$controller" AL 2>/dev/null; done |
            sed -n 's/.*Reported Channel,Device(T:L) *: *\([0-9]*\),\([0-9]*\)(.*/\1,\2/p' |
            sort -u |
            while read -r address; do
                run smartctl --json -x -d "aacraid,$number,$address" "$disk"
            done
        ;;
    esac
done
for tool in ssacli hpssacli hpacucli; do run "$tool" ctrl all show config detail; done
for number in 1 2 3 4; do run arcconf GETCONFIG "$number" AL; done
for tool in storcli64 storcli2 storcli perccli64 perccli2 perccli; do
    run "$tool" /call/vall show all J
done
run zpool status -t -LP
run zpool get -Hpo name,property,value autotrim
for pool in $(zpool list -H -o name 2>/dev/null); do run zdb -C "$pool"; done
for dataset in $(zfs list -H -o name 2>/dev/null); do
    run zfs get -Hpo property,value sync,compression,primarycache,logbias,recordsize,atime "$dataset"
done
echo "=end"
