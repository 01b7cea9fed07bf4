"""Logits of a generation, also over tokens that are given, and how they are compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from torch_ttnn.workloads.agreement import pcc


class Generated(NamedTuple):
    """New tokens of one sequence, and the logits that each was chosen from: [tokens, vocabulary]."""

    tokens: torch.Tensor
    logits: torch.Tensor


class Forced:
    """A logits processor that records logits and torch's generator, and lets each step choose a given token."""

    def __init__(self, tokens: torch.Tensor | None = None) -> None:
        self.tokens = tokens
        self.seen: list[torch.Tensor] = []
        self.states: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.seen.append(scores[0].float().cpu().clone())
        self.states.append(torch.get_rng_state())
        if self.tokens is None:
            return scores
        chosen = torch.full_like(scores, -torch.inf)
        chosen[:, self.tokens[len(self.seen) - 1]] = 0
        return chosen

    def logits(self) -> torch.Tensor:
        return torch.stack(self.seen)


def logits_of(model: Any, prompt: dict[str, torch.Tensor], tokens: int) -> Generated:
    """Greedy tokens of a model, and their logits."""
    recorded = Forced()
    made = model.generate(**prompt, max_new_tokens=tokens, do_sample=False, logits_processor=[recorded])
    return Generated(made[0, -tokens:].cpu(), recorded.logits())


def clear_steps(logits: torch.Tensor, error: float) -> torch.Tensor:
    """The steps at which the best token stays the best if each logit is off by an error."""
    best = logits.topk(2, dim=-1).values
    return best[:, 0] - best[:, 1] > 2 * error


def first_difference(tokens: torch.Tensor, others: torch.Tensor) -> int:
    """The index of the first different token; their number if there is none."""
    different = (tokens != others).nonzero()
    return int(different[0]) if len(different) else len(tokens)


def clear_draws(recorded: Forced, error: float, top_k: int) -> torch.Tensor:
    """The steps at which the same token is drawn if each logit is off by an error.

    torch draws the token whose probability, divided by a random number, is the largest.
    """
    state = torch.get_rng_state()
    raced = []
    for logits, before in zip(recorded.seen, recorded.states):
        torch.set_rng_state(before)
        kept = logits.masked_fill(logits < logits.topk(top_k).values[-1] - 2 * error, -torch.inf)
        raced.append(kept - torch.empty(1, len(logits)).exponential_(1)[0].log())
    torch.set_rng_state(state)
    return clear_steps(torch.stack(raced), error)


def assert_agrees(
    want: Generated, logits: torch.Tensor, tokens: torch.Tensor, *, least: float = 0.999, error: float = 0.03
) -> None:
    """Logits over the same tokens agree, and so do tokens up to the first whose margin is within the error."""
    assert pcc(logits, want.logits) >= least
    assert float((logits - want.logits).norm() / want.logits.norm()) <= error
    largest = float((logits - want.logits).abs().max())
    clear = clear_steps(want.logits, largest)
    assert torch.equal(logits.argmax(-1)[clear], want.tokens[clear])
    first = int((~clear).nonzero()[0]) if not clear.all() else len(clear)
    assert torch.equal(tokens[:first], want.tokens[:first])
