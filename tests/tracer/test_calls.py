"""Arguments by name, as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_ttnn.tracer.calls import Call, bound, jsonable, record
from torch_ttnn.tracer.records import NOT_JSONABLE, TensorFact

aten: Any = torch.ops.aten

VALUES = [
    (3, 3),
    (2.5, 2.5),
    (True, True),
    (None, None),
    ("mean", "mean"),
    ([1, [2, 3]], [1, [2, 3]]),
    (float("inf"), "inf"),
    (float("-inf"), "-inf"),
    (float("nan"), "nan"),
    (torch.float16, "torch.float16"),
    (torch.device("cpu"), "cpu"),
    (torch.strided, "torch.strided"),
    (torch.channels_last, "torch.channels_last"),
    (torch.Size([2, 3]), [2, 3]),
    (torch.ones(2), NOT_JSONABLE),
    ([None, torch.ones(2)], NOT_JSONABLE),
    (1 + 2j, NOT_JSONABLE),
    (torch.Generator(), NOT_JSONABLE),
    (object(), NOT_JSONABLE),
]


@pytest.mark.parametrize("value, expected", VALUES, ids=[str(expected) for _, expected in VALUES])
def test_values_as_json(value: Any, expected: Any) -> None:
    assert jsonable(value) == expected


SCALARS = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner), max_leaves=12))
def test_any_argument_becomes_json(value: Any) -> None:
    text = json.dumps(jsonable(value), allow_nan=False)
    assert json.loads(text) == jsonable(value)


def test_arguments_have_the_names_of_the_schema_and_its_defaults() -> None:
    x, weight = torch.ones(1, 2, 4, 4), torch.ones(3, 2, 1, 1)
    found = bound(aten.conv2d.default, (x, weight), {"stride": [2, 2]})
    assert list(found) == ["input", "weight", "bias", "stride", "padding", "dilation", "groups"]
    assert found["bias"] is None and found["stride"] == [2, 2] and found["groups"] == 1


def test_outputs_have_the_names_of_the_schema_where_it_has_some() -> None:
    x = torch.ones(2, 3)
    recorded = record(Call(aten.max.dim, (x, 1), {}, aten.max.dim(x, 1)))
    assert recorded.outputs == (TensorFact((2,), "float32", "values"), TensorFact((2,), "int64", "indices"))
    parts = record(Call(aten.split.Tensor, (x, 1), {}, aten.split.Tensor(x, 1)))
    assert [each.name for each in parts.outputs] == ["[0]", "[1]"]
    gradients = aten.native_layer_norm_backward.default
    args = (x, x, [3], torch.ones(2, 1), torch.ones(2, 1), None, None, [True, False, False])
    assert [each.name for each in record(Call(gradients, args, {}, gradients(*args))).outputs] == ["[0]"]


def test_operations_of_other_libraries() -> None:
    with torch.library._scoped_library("tracer_test", "DEF") as library:
        library.define("twice(Tensor x, *, int times=2) -> Tensor")
        library.impl("twice", lambda x, times=2: x * times, "CPU")
        op = torch.ops.tracer_test.twice.default
        recorded = record(Call(op, (torch.ones(3),), {}, op(torch.ones(3))))
    assert recorded.op_type == "tracer_test.twice.default"
    assert recorded.arguments == {"x": NOT_JSONABLE, "times": 2}
