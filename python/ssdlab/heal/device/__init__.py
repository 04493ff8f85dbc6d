"""Heal a whole device: what a file system has in use is written over itself, in order, in place.

allocated   which ranges does the file system have in use? (asks its own tools)
windows     pieces and windows of them: numbers alone
refusal     may this device be touched, and may this file hold the journal?
journal     what is about to be overwritten, kept on another drive
recover     after a crash: put back what was torn, unless others may have written since
in_place    one window: read, journal, write, flush, read back
frozen      one window of a mounted file system, by way of the watchdog
watchdog    the process that freezes, and thaws whatever happens
guard       the process that thaws if the watchdog and its hand are killed together
kernel      the calls that they take
course      a device from the first look to the last measurement
whole       what is done with a device, at rest or mounted
"""
