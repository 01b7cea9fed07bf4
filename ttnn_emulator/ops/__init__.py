"""The operations, one package per family. Importing this package registers all of them.

`# tt-metal <version>: <path>, <symbol>` names the library's source of a constant, a formula or a decision. Kernels,
headers and Python are cited at v0.81.1, from the wheel; host sources, which it does not contain, at the tag v0.77.0.
`# asked ttnn 0.81.1: …` marks facts that are answers of the library itself.
"""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
