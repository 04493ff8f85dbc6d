"""How a range of a live file gets a new place, written in order: one module a kernel interface.

rewriter        what they have in common
donor           a file without a name that gives its blocks away
move_extents    ext4: the kernel moves the data to a donor's blocks, under its locks
share           XFS, btrfs: copied to a donor, compared and shared by the kernel, under its locks
copy            others: a whole copy that takes the file's place while nobody has it open
"""
