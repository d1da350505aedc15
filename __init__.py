"""The root holds aucsched's rooms; they install as the package ``aucsched`` (see src/aucsched).

If the checkout's folder is called ``aucsched`` and Python runs in the folder above, it finds this
file before the installed package. The package under src is then loaded in its place.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

if __name__ == "aucsched":
    _package = Path(__file__).parent / "src" / "aucsched"
    _spec = spec_from_file_location(
        __name__, _package / "__init__.py", submodule_search_locations=[str(_package)]
    )
    assert _spec is not None  # noqa: S101 - for the types: a file has one
    assert _spec.loader is not None  # noqa: S101 - the same
    sys.modules[__name__] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[__name__])
