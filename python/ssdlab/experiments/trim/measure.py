"""trim: does a discard reach the flash?

First it records what each layer declares. Then it fills blocks with random bytes, reads them from
the device itself, frees them, discards them, and reads them again. On a twin it checks the address
map instead, by the flash reads that a read costs, and measures what a trim saves in relocation.

    plan           sizes and waiting times
    counters       what layers declare, and the discards that the kernel counts
    content        digests of the written blocks, and comparison with what they read as
    blocks         the blocks of the file on its device, and which of them are read
    measure_real   write, free, discard, read: in a directory, and on a block device
    measure_twin   the same on a twin
"""

from ssdlab.experiments.trim import measure_real, measure_twin
from ssdlab.experiments.trim.plan import Plan, plan
from ssdlab.runner.session import RunSession

__all__ = ["Plan", "measure", "plan"]


def measure(session: RunSession, plan: Plan) -> None:
    """Measures a twin, a directory or a block device.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    if session.target.is_virtual:
        measure_twin.measure(session, plan)
    elif session.target.test_file is not None:
        measure_real.in_directory(session, plan)
    else:
        measure_real.on_device(session, plan)
