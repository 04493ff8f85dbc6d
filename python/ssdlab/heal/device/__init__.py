"""Heal a whole device: rewrites the ranges that its file system uses, in place, in device order.

whole      heals or recovers a device, unmounted or mounted
refusal    whether the device may be rewritten, and whether a file may hold the journal
allocated  which ranges the file system has in use, from its own tools
windows    how ranges are grouped for measuring and rewriting; no I/O
run        one device: measure, choose, rewrite, measure again
drive      the device opened for direct I/O
journal    a copy, on another drive, of the data that is about to be overwritten
recover    after a crash: restores torn data, unless newer data may be there
in_place   rewrites one window of an unmounted device
frozen     rewrites one window of a mounted device, through the watchdog
watchdog   the process that freezes and thaws the file system; the guard that thaws if it is killed
kernel     freeze, thaw, free space and page cache of a mounted file system
"""
