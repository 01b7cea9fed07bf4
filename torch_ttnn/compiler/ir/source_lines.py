"""The line of the user's model that an operation comes from."""

from __future__ import annotations

import re

import torch.fx

from torch_ttnn.compiler.errors import ProgramError
from torch_ttnn.compiler.ir.nodes import target_name

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n\s*([^\n]*)')


def source_line(node: torch.fx.Node) -> str:
    """`file:line: code` of the innermost frame of the model, or an empty string."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return ""
    path, line, _, code = frames[-1]
    return f"{path}:{line}: {code.strip()}"


def stack_frames(node: torch.fx.Node) -> list[str]:
    """The stack of the model's code that a captured node comes from, innermost frame first, as Python prints frames.

    The innermost frame also says the module and the operation.
    """
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames or node.op != "call_function":
        return []
    texts = [f'  File "{path}", line {line}, in {name}\n    {code.strip()}' for path, line, name, code in frames[::-1]]
    texts[0] += "  # " + ": ".join(filter(None, [module_path(node), target_name(node)]))
    return [f"{text}\n" for text in texts]


def module_path(node: torch.fx.Node) -> str:
    """The path of the innermost module, e.g. `encoder.layer.0.attention`."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = next(reversed(stack.values()))[0]
    return re.sub(r"^L\['\w+'\]\.?", "", str(path)).replace("_modules['", "").replace("']", "").strip(".")


def failed_call(error: BaseException, call: str, origin: torch.fx.Node | None) -> ProgramError:
    """The error for a failed call of a program, with the line of the model that the call comes from."""
    message = f"{error}\n  in {call.strip()}"
    if origin is not None:
        message += f"\n  for {origin.target} at {source_line(origin) or 'an unknown line of the model'}"
    return ProgramError(message)
