"""`ssdlab checkup`: the doctor and the quick experiments on one target, in five minutes.

parts.py      which experiments run, for how long at most, and with which sizes
execute.py    runs them one after the other and stores the checkup
record.py     the folder of a checkup: its runs, the doctor's report, `checkup.json`
lights/       traffic lights: the thresholds, with their reasons
table.py      the suite's results as CrystalDiskMark's table
report/       terminal, HTML page, JSON and the card to share
"""
