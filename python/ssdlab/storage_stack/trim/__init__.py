"""Whether each layer under a path passes a TRIM, and how many bytes were discarded on each.

    stack     the layers of a mount or device, from the top down; which layer blocks a TRIM
    devices   whether a device passes discards; bytes discarded on it, and in use
    tables    the parts of device-mapper tables that sysfs does not show

These are declarations: a drive may accept a TRIM and ignore it. `ssdlab run trim` measures that.
"""
