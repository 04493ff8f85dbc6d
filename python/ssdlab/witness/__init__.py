"""The witness: does a drive keep the writes that it acknowledged?

Another machine records every acknowledgement, then the power of the drive is cut.

limits      sizes and choices; imports nothing heavy
stamps      the content of each sector: which write it belongs to
ledger      per sector: which write must be there, which write may be there
judge       reads the region back and compares it with the ledger: kinds of failure
protocol    frames, authenticated by a shared secret
journal     the server's log on its disk
server      records the messages
client      sends the messages, reconnects when the connection is lost
target nbd  a file, a block device, a served twin
writer      threads that write stamped requests and report them
controls    did the software send flushes, did the drive lose power?
summary     findings and verdict over many cuts
"""
