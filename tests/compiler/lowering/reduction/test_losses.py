"""Losses and their gradients."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.compiler.against_torch import check

aten = torch.ops.aten
r = torch.randn
REDUCTIONS = ["none", "mean", "sum"]


def classes(*shape, count=10, ignored=-100):
    target = torch.randint(0, count, shape)
    target.view(-1)[2] = ignored
    return target


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [-100, 3])
def test_negative_log_likelihood(reduction, weighted, ignored):
    weight = [torch.rand(10)] if weighted else []

    def function(scores, target, *weight):
        return F.nll_loss(scores, target, *weight, ignore_index=ignored, reduction=reduction)

    check(function, r(6, 10).log_softmax(1), classes(6, ignored=ignored), *weight)


def test_of_one_sample_and_of_images():
    check(lambda s, t: F.nll_loss(s, t), r(10).log_softmax(0), torch.tensor(4))
    check(lambda s, t: F.cross_entropy(s, t), r(2, 5, 4, 3), classes(2, 4, 3, count=5))


def test_impossible_classes_do_not_disturb():
    scores = r(4, 5)
    scores[:, 2] = -math.inf
    check(lambda s, t: F.cross_entropy(s, t), scores, torch.tensor([0, 1, 3, 4]))


@pytest.mark.parametrize("reduction", range(3), ids=REDUCTIONS)
def test_its_gradient(reduction):
    scores, target, total = r(6, 10).log_softmax(1), classes(6), torch.tensor(5.0)
    grad = r(6) if reduction == 0 else r(())
    check(lambda g, s, t, w: aten.nll_loss_backward(g, s, t, None, reduction, -100, w), grad, scores, target, total)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"])
def test_losses_of_differences(name, reduction):
    check(lambda x, y: getattr(F, name)(x, y, reduction=reduction), r(3, 40), r(3, 40), on_device=False)


def test_likelihood_of_probabilities():
    check(lambda x, y: F.binary_cross_entropy_with_logits(x, y), r(3, 40), torch.rand(3, 40), on_device=False)
    check(
        lambda x, y: F.kl_div(x, y, reduction="batchmean"),
        r(3, 40).log_softmax(1),
        r(3, 40).softmax(1),
        on_device=False,
    )
    check(lambda x, y: F.cross_entropy(x, y), r(3, 40), r(3, 40).softmax(1), on_device=False)
