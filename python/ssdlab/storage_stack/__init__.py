"""What lies between a file and the flash: mounts, file systems, extents, cache, devices; read-only.

One module a question:

    mounts          which mount holds a path?
    filesystem      what does its kind mean for a measurement?
    attributes      what do this file's own attributes mean?
    space           how much of it may a test use?
    extents         where on the device are the bytes of a file, and which are there at all?
    cache           how much of a file is in the page cache?
    blockdev        what is this block device?
    layers          which devices lie under it, down to the drives?
    device_warnings   what does the kind of a drive mean for a measurement?
    trim            whether a TRIM passes each layer, and what was sent to it
    in_use          why must this block device not be destroyed?
    same_storage    which other block devices reach the same bytes?
    signatures      what does it hold?
    file.seen       what is one file, its mount and its place?
    hardware        how fast is its link, how warm is it?

The roots of /proc and /sys are parameters everywhere, so that captured trees can be examined.
"""
