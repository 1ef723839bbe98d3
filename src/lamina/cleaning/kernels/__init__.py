"""The work on every record of a pass, compiled by numba.

Importing a module of this package imports numba and compiles, or loads from numba's cache on disk: so only a cleaning
job does, never a broker. A cached kernel is good only for the sources that it was compiled from, and numba looks at
one file alone; so every kernel closes over ``sources.STAMP``, which is part of the cache's key.
"""

import os

from lamina.cleaning.kernel_cache import tell_of_compilation

tell_of_compilation(os.path.dirname(os.path.abspath(__file__)))
