"""The Linux storage stack between a file and the flash. Everything here is read-only.

    mounts           which mount holds a path
    filesystem       warnings about a file system and its mount options
    space            free space, and how much of it a test may use
    extents          where a file's bytes are on the device (FIEMAP)
    cache            how much of a file is in the page cache
    file_info        one file: attributes (chattr) with warnings, extents, mount, drives
    blockdev         one block device: size, identity, queue limits, transport
    device_warnings  warnings about the kind of a device
    layers           the devices under a mount or device, down to the drives
    in_use           reasons not to overwrite a block device
    same_storage     other block devices that reach the same bytes
    signatures       file systems, partition tables and RAID members on a device
    trim             whether each layer passes a TRIM; discard counters
    health           SMART, link speed, temperature
    snapshot         all of the above for one target, as one record

The roots of /proc and /sys are parameters everywhere, so that captured trees can be examined.
"""
