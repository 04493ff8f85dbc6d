"""The witness: does a drive keep what it acknowledged? A second machine remembers, power is cut.

stamps      what a sector says about itself
ledger      two bounds a sector: what must be there, what may be there
judge       what was found against the ledger: kinds of failure
protocol    frames, and a session proven by a shared secret
journal     the server's log on its disk
server      takes what was acknowledged
client      tells it, over lost connections
target nbd  a file, a block device, a served twin
writer      threads that write and tell
verify      reads all and judges
controls    did the software flush, was the power lost?
summary     what many cuts say together
"""
