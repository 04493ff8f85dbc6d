"""trim: does a discard reach the flash?

First it records what each layer declares. Then it fills blocks with random bytes, reads them from
the device itself, frees them, discards them, and reads them again. On a twin it counts flash reads
instead, to see which blocks are still mapped, and measures how much relocation a trim avoids.

    plan           sizes and waiting times
    counters       what layers declare, and the discards that the kernel counts
    content        digests of the written blocks, compared with what is read back
    blocks         the blocks of the file on its device, and which of them to read
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
