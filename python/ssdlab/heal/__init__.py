"""Heal: live files get their order of writing back, piece by piece, where reading is slow.

wish        what the user asked for
refusal     may this file be touched? (decides)
pieces      which pieces does it have, which are slow, what is to be rewritten? (decides)
speed       how fast does each piece read? (measures)
remembered  what did an interrupted run rewrite already?
ways/       how a range gets its new place, by file system (does)
course      one file from the first look to the last measurement
outcome     what came of it
"""
