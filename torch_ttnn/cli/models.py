"""`torch-ttnn models`: which models there are."""

from __future__ import annotations

import argparse

HELP = "list models that can be named"
EPILOG = """\
names
  resnet18                        the first of zoo, torchvision, timm and transformers that knows it
  torchvision:resnet18            that library's, also zoo:, timm: and transformers:
  transformers:BertModel          a class; also a config (BertConfig), a type (bert), a hub name, a folder
  timm:convnext*                  all that match
  package.module:function         gives a module, or (module, inputs); also file.py:function, or a class of modules

examples
  torch-ttnn models                         the zoo
  torch-ttnn models torchvision --task detection
  torch-ttnn models --like 'timm:*mobilenet*'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from torch_ttnn.cli.choices import LIBRARIES, TASKS

    parser.add_argument("library", nargs="?", choices=LIBRARIES, default="zoo", help="default zoo")
    parser.add_argument("--task", choices=TASKS, help="of torchvision's")
    parser.add_argument("--like", metavar="PATTERN", help="all that match, e.g. 'timm:*mobilenet*'")


def run(options: argparse.Namespace) -> int:
    from torch_ttnn.zoo import catalog

    names = catalog.expand([options.like]) if options.like else catalog.names(options.library, options.task)
    print("\n".join(names))
    return 0
