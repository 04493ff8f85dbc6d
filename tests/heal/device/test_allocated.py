"""Parses what dumpe2fs, xfs_db and xfs_logprint print for small file systems."""

from __future__ import annotations

import pytest

from ssdlab.errors import TargetError
from ssdlab.heal.device.allocated import parse_ext, parse_xfs
from ssdlab.heal.device.windows import PROTECTED_BYTES
from ssdlab.heal.pieces import Range

EXT4 = """Filesystem volume name:   <none>
Filesystem UUID:          7798332e-ef39-42bd-9979-b17486caaac7
Filesystem features:      has_journal ext_attr resize_inode dir_index filetype extent 64bit flex_bg
Filesystem state:         clean
Block count:              25600
Free blocks:              300
First block:              0
Block size:               4096
Journal backup:           inode blocks


Group 0: (Blocks 0-12799) csum 0x95d7 [ITABLE_ZEROED]
  Primary superblock at 0, Group descriptors at 1-1
  100 free blocks, 12789 free inodes, 2 directories
  Free blocks: 2646-2700, 12755-12799
  Free inodes: 12-12800
Group 1: (Blocks 12800-25599) csum 0x1b7f [INODE_UNINIT]
  200 free blocks, 12800 free inodes, 0 directories, 12800 unused inodes
  Free blocks: 12801, 12900-13098
  Free inodes: 12801-25600
"""
XFS = """blocksize = 4096
dblocks = 1000
agblocks = 300
logstart = 1034
logblocks = 50
uuid = b162d385-2a68-4d21-ae7d-69fb125cb552
    agno    agbno      len
       0       24      200
       1        6        1
       3       10       90
   from      to extents  blocks    pct
      1       1      16      16   0.02
  16384   25600       3   76756  89.27
"""
LOG = """xfs_logprint:
    data device: 0xffffffffffffffff
    log device: 0xffffffffffffffff daddr: 409648 length: 131072

    log tail: 2 head: 2 state: <CLEAN>
"""
BLOCK = 4096


def blocks(ranges: tuple[Range, ...]) -> list[tuple[int, int]]:
    return [(each.offset // BLOCK, each.length // BLOCK) for each in ranges]


def test_ext4_has_everything_in_use_except_free_blocks_and_the_protected_bytes() -> None:
    file_system = parse_ext(EXT4, "ext4")
    assert file_system.uuid.startswith("7798332e")
    assert (file_system.size_bytes, file_system.block_bytes) == (25600 << 12, BLOCK)
    first = PROTECTED_BYTES // BLOCK
    assert blocks(file_system.ranges) == [
        (first, 2646 - first),
        (2701, 12755 - 2701),
        (12800, 1),
        (12802, 98),
        (13099, 25600 - 13099),
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("state:         clean", "state:         not clean", "run e2fsck"),
        ("has_journal", "has_journal needs_recovery", "mount and unmount it"),
        ("flex_bg", "bigalloc", "bigalloc"),
        ("Free blocks: 12801, ", "Free blocks: ", "299 free blocks, but the superblock counts 300"),
    ],
)
def test_an_ext4_whose_free_blocks_can_be_wrong_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        parse_ext(EXT4.replace(old, new, 1), "ext4")


def test_a_mounted_ext4_may_have_a_journal_that_is_not_empty_but_no_errors() -> None:
    mounted = EXT4.replace("has_journal", "has_journal needs_recovery")
    assert parse_ext(mounted, "ext4", mounted=True).ranges == parse_ext(EXT4, "ext4").ranges
    with pytest.raises(TargetError, match="has errors"):
        parse_ext(mounted.replace("clean", "clean with errors"), "ext4", mounted=True)


def test_xfs_free_extents_are_counted_per_allocation_group_and_its_log_is_not_in_use() -> None:
    file_system = parse_xfs(XFS, LOG)
    assert file_system.log_state == "log tail: 2 head: 2 state: <CLEAN>"
    # Groups of 300 blocks use 512 addresses each: the log begins at block 10 of group 2.
    assert blocks(file_system.ranges) == [(16, 8), (224, 82), (307, 303), (660, 250)]


def test_an_xfs_whose_log_is_not_empty_is_refused() -> None:
    with pytest.raises(TargetError, match="mount and unmount it"):
        parse_xfs(XFS, LOG.replace("CLEAN", "DIRTY"))
