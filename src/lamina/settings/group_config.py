"""What holds for one group: the broker's settings and what was set on the group itself.

Owns which configs a group can have. Must not know what a group does with them.
"""

from collections.abc import Mapping
