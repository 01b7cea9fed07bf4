"""`torch-ttnn models`: lists models."""

from __future__ import annotations

import json

import click

from torch_ttnn.cli.choices import LIBRARIES, TASKS
from torch_ttnn.cli.parameters import JSON, Argument, Option, Options

HELP = "list available models"
EPILOG = """\
names
  resnet18                        the first of zoo, torchvision, timm and transformers that knows it
  torchvision:resnet18            that library's, also zoo:, timm: and transformers:
  transformers:BertModel          a class; also a config (BertConfig), a type (bert), a hub name, a folder
  timm:convnext*                  all that match
  package.module:function         returns a module, or (module, inputs); also file.py:function, or a module class

examples
  torch-ttnn models                         the zoo
  torch-ttnn models torchvision --task detection
  torch-ttnn models --like 'timm:*mobilenet*'
"""
PARAMETERS = [
    Argument("library", required=False, type=click.Choice(LIBRARIES), default="zoo", help="default zoo"),
    Option("--task", type=click.Choice(TASKS), help="of torchvision's"),
    Option("--like", metavar="PATTERN", help="all that match, e.g. 'timm:*mobilenet*'"),
    JSON,
]


def run(options: Options) -> int:
    from torch_ttnn.zoo import catalog

    names = catalog.expand([options.like]) if options.like else catalog.names(options.library, options.task)
    print(json.dumps(names, indent=1) if options.json else "\n".join(names))
    return 0
