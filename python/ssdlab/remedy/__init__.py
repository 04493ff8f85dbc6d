"""Remedies: what changes a drive's state for the better, and never what is on it.

heal        writes files in order again that read slowly, while they are in use
trim        asks a file system to discard what is free, and tells what reached each device
provision   how much of a drive to leave unused, what that brings on a twin, and in which order
steps       the plan for it, by the way a drive is attached
"""
