"""Whether the disk has room for what a pass is about to write.

There was room when it was planned; whoever fills the disk meanwhile must not find it full of a pass. Must not know what
is written.
"""

from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import NoRoom
from lamina.log.files import Disk


def check_room(disk: Disk, plan: Plan, size_bytes: int) -> None:
    """Raises :class:`NoRoom`."""
    free_bytes = disk.free_bytes(plan.pass_folder)
    if free_bytes - size_bytes < plan.keep_free_bytes:
        raise NoRoom(
            f"the disk of {plan.directory} became too full for the pass: {free_bytes} bytes are free, and "
            f"{plan.keep_free_bytes} are to stay so (lamina.disk.free.min.bytes)"
        )
