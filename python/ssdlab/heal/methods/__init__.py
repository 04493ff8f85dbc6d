"""Ways to rewrite a range of a live file in order: one module for each kernel interface.

rewriter      the interface of all methods, and the donor: an unnamed file that provides blocks
move_extents  ext4: the kernel moves the data to the donor's blocks, under its locks
share         XFS, btrfs: copy to the donor; the kernel compares and shares, under its locks
copy          others: a complete copy replaces the file while no one has it open
"""
