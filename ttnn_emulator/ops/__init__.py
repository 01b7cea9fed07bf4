"""The operations, one package per family. Importing this package registers all of them.

`# tt-metal v0.81.1: <path>, <symbol>` names the library's source of a constant, a formula or a decision. Kernels and
headers were read in the wheel; host sources, which the wheel lacks, in the repository at commit e4f9f0bb8de.
`# asked ttnn 0.81.1: …` marks facts that are answers of the library itself.
"""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
