"""Training on the device matches torch, and differences are detected."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.results import subjects
from tests.results.test_measure import HERE, row
from torch_ttnn.results.training import (
    ZERO,
    NotTrainable,
    compare,
    disable_dropout,
    gradient_fields,
    loss_of,
    raise_biases,
)
from torch_ttnn.workloads.agreement import Agreement
from torch_ttnn.zoo.initialisation import LIFT


def test_a_row_of_training() -> None:
    found = row(HERE + "small", "train")
    assert (found.status, found.mode, found.key) == ("device", "train", "tests.results.subjects.small (train)")
    assert found.programs == 2, "forward and backward"
    assert found.gradient_pcc > 0.99
    assert len(found.gradients) == 6
    assert found.gradients[0].pcc == found.gradient_pcc
    assert [each.pcc for each in found.gradients] == sorted(each.pcc for each in found.gradients)
    assert {each.parameter for each in found.gradients} >= {"first.weight", "norm.bias", "second.bias"}
    assert len(found.losses) == len(found.original_losses) == 3
    for mine, theirs in zip(found.losses, found.original_losses):
        assert math.isclose(mine, theirs, rel_tol=0.02)
    assert found.losses[2] < found.losses[1] < found.losses[0], "it learns"
    assert found.original_seconds > 0
    assert found.compiled_seconds > 0
    assert (found.reduced, found.compared) == ("", "")
    assert found.torch_pcc is None, "measured only if the device's is low"
    assert found.versions["precision"] == "float32"


def test_dropout_is_off_and_the_row_says_so() -> None:
    found = row(HERE + "dropping", "train")
    assert found.gradient_pcc > 0.99
    assert found.compared == "Dropout is off, so that both ways compute the same."


def test_a_wrong_gradient_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device's gradients with one row of zeros."""
    from torch_ttnn.results import training

    original = training.compare

    def tampered(got: dict, want: dict):
        broken = got["second.weight"].clone()
        broken[0] = 0
        return original({**got, "second.weight": broken}, want)

    monkeypatch.setattr(training, "compare", tampered)
    found = row(HERE + "small", "train")
    assert found.gradients[0].parameter == "second.weight"
    assert found.gradient_pcc < 0.97
    assert found.torch_pcc is not None


def test_gradients_that_are_zero_up_to_rounding_are_skipped() -> None:
    found = row(HERE + "zero_gradients", "train")
    names = {each.parameter for each in found.gradients}
    assert "first.bias" not in names, "the norm subtracts it"
    assert names == {"first.weight", "second.weight", "second.bias"}
    assert found.gradient_pcc > 0.99


def test_the_threshold_is_relative_to_the_largest() -> None:
    large, small = torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.0]) * ZERO
    want = {"large": large, "small": small * 0.9, "above": small * 1.1}
    assert [name for name, _ in compare(want, want)] == ["large", "above"]
    with pytest.raises(NotTrainable, match="all gradients are zero"):
        list(compare({}, {"a": torch.zeros(2)}))


def test_a_gradient_that_is_missing_is_wrong() -> None:
    assert dict(compare({}, {"a": torch.ones(2)})) == {"a": Agreement(0.0, 1.0)}


def test_one_number_agrees_or_does_not() -> None:
    want = {"scale": torch.tensor([2.0])}
    assert dict(compare({"scale": torch.tensor([2.05])}, want))["scale"].pcc == 1.0
    assert dict(compare({"scale": torch.tensor([2.5])}, want))["scale"].pcc == 0.0


def test_the_ten_worst_are_kept() -> None:
    many = {f"p{number}": Agreement(1 - number / 100, 0.1) for number in range(20)}
    fields = gradient_fields(many)
    assert fields["gradient_pcc"] == many["p19"].pcc
    assert [each.parameter for each in fields["gradients"]] == [f"p{number}" for number in range(19, 9, -1)]


def test_the_loss_of_the_model_is_used_if_it_has_one() -> None:
    out = subjects.WithLoss()(torch.ones(4, 32))
    assert loss_of(out, 0) is not None
    assert torch.equal(loss_of(out, 0), out["loss"])
    plain = subjects.Small()(torch.ones(4, 32))
    assert torch.equal(loss_of(plain, 1), loss_of((plain, torch.ones(3)), 1)), "only what has a gradient"
    assert not torch.equal(loss_of(plain, 1), loss_of(plain, 2))
    with pytest.raises(NotTrainable, match="no output of the model"):
        loss_of(torch.ones(3), 0)


def test_rates_are_set_to_zero_wherever_they_are() -> None:
    model = nn.Sequential(nn.Dropout(0.1), nn.MultiheadAttention(4, 2, dropout=0.2), subjects.Dropping())
    assert disable_dropout(model)
    assert not disable_dropout(model)
    assert (model[0].p, model[1].dropout, model[2].attention_dropout, model[2].dropout.p) == (0.0, 0.0, 0.0, 0.0)
    assert not disable_dropout(subjects.Small())


def test_biases_of_batch_norms_are_raised() -> None:
    norm = nn.BatchNorm2d(3)
    assert raise_biases(nn.Sequential(norm, nn.Linear(2, 2), nn.BatchNorm1d(2, affine=False)))
    assert norm.bias.tolist() == [LIFT] * 3, "as in inference"
    assert not raise_biases(nn.Linear(2, 2))


def test_a_row_says_that_biases_are_raised() -> None:
    assert row(HERE + "normed", "train").compared == f"Biases of batch norms are raised by {LIFT} deviations."


def test_a_model_without_gradients_fails_with_the_reason() -> None:
    found = row(HERE + "without_gradients", "train")
    assert found.status == "fails"
    assert "no output of the model is differentiable" in found.reason


def test_a_batch_norm_with_one_value_gets_more_images(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_on_one(entry, mode, conditions):
        if entry.batch == 1:
            raise ValueError("Expected more than 1 value per channel when training, got input size [1, 64, 1, 1]")
        return {"status": "device", "batch": entry.batch}

    monkeypatch.setattr("torch_ttnn.results.measure._run", fails_on_one)
    assert row("mnist-cnn", "train").batch == 8
    assert row("mnist-cnn", "train", batch=1).status == "fails", "as requested"
    assert row("mnist-cnn", "eval").status == "fails"
