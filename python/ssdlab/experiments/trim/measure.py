"""trim: does a discard reach the flash?

First the answer that the system gives for each layer; then a trial: blocks are filled with random
bytes, read from the device itself, freed, discarded, and read from the device again. On a twin the
address map is looked at instead, by what reads cost, and what the spare room gained is worth.

    plan        sizes and waits
    told        what is declared, and what the kernel counted as sent
    mark        what was written, so that it is known again; what a read found
    places      which blocks of the device are the file's, and which of them are looked at
    trial       write, free, discard, look: in a directory, and on a block device
    twin        the same on a twin
"""

from ssdlab.experiments.trim import on_twin as twin
from ssdlab.experiments.trim import real as trial
from ssdlab.experiments.trim.plan import Plan, plan
from ssdlab.runner.session import RunSession

__all__ = ["Plan", "measure", "plan"]


def measure(session: RunSession, plan: Plan) -> None:
    """Runs the trial that the target allows.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    if session.target.is_virtual:
        twin.measure(session, plan)
    elif session.target.test_file is not None:
        trial.in_directory(session, plan)
    else:
        trial.on_device(session, plan)
