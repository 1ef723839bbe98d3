"""CRC-32C, which guards every batch: the compiled function of the package ``crc32c``, without the package around it.

The package asks for its own version when it is imported, which loads ``importlib.metadata`` and half of ``email``: a
twentieth of a broker's start. Whoever imports the package afterwards gets the module that is loaded here.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

_COMPILED = "crc32c._crc32c"


def load() -> ModuleType:
    """The module that has the function: the package itself where a release of it has nothing beneath."""
    if _COMPILED in sys.modules:
        return sys.modules[_COMPILED]
    package = find_spec("crc32c")
    spec = None if package is None else PathFinder.find_spec(_COMPILED, package.submodule_search_locations)
    if spec is None or spec.loader is None:
        import crc32c as whole

        return whole
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_COMPILED] = module
    return module


if TYPE_CHECKING:
    from crc32c import crc32c as crc32c
else:
    crc32c: Any = load().crc32c
