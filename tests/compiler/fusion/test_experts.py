"""Mixtures of experts: entirely on the device, correct, and with the experts that torch chooses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_ttnn import TorchTtnnOption
from torch_ttnn.compiler.ir.metadata import REASON
from torch_ttnn.workloads.agreement import pcc
from torch_ttnn.zoo.torchvision_ops import ensure_operators

TOKENS, WIDTH, HIDDEN, EXPERTS, K = 13, 64, 96, 8, 2


@pytest.fixture(autouse=True)
def inference():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def run(function, *args) -> tuple[object, list[str], list[str]]:
    """The results of the compiled function, the operations left on the host, and the fusions."""
    options = TorchTtnnOption(cache_dir="", warn=False)
    result = torch.compile(function, backend="ttnn", options=options)(*args)
    host = [str(node.target) for program in options.programs for node in program.graph.nodes if REASON.on(node)]
    return result, host, [each["name"] for program in options.programs for each in program.fusions]


def assert_close(got: torch.Tensor, want: torch.Tensor) -> None:
    assert pcc(got.float(), want.float()) > 0.999
    assert (got - want).norm() / want.norm() < 0.02


class Experts(nn.Module):
    """As transformers writes them: rows sorted by expert and multiplied in groups, or weights looked up row by row."""

    def __init__(self, way: str, k: int = K, gated: bool = True, biased: bool = False) -> None:
        super().__init__()
        self.way, self.k, self.gated = way, k, gated
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN * (2 if gated else 1)) / 8)
        self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) / 8)  # transposed
        self.up_bias = nn.Parameter(torch.randn(EXPERTS, HIDDEN * (2 if gated else 1)) / 8) if biased else None
        self.down_bias = nn.Parameter(torch.randn(EXPERTS, WIDTH) / 8) if biased else None

    def activated(self, x: torch.Tensor) -> torch.Tensor:
        if not self.gated:
            return F.gelu(x)
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factors, ids = self.router(x).softmax(-1).topk(self.k)
        return (self.sorted_rows if self.way == "grouped" else self.looked_up)(x, factors, ids)

    def looked_up(self, x: torch.Tensor, factors: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        rows, flat = x.repeat_interleave(self.k, dim=0), ids.reshape(-1)
        hidden = torch.bmm(rows.unsqueeze(1), self.up[flat]).squeeze(1)
        if self.up_bias is not None:
            hidden = hidden + self.up_bias[flat]
        result = torch.bmm(self.down[flat], self.activated(hidden).unsqueeze(-1)).squeeze(-1)
        if self.down_bias is not None:
            result = result + self.down_bias[flat]
        return (result * factors.reshape(-1, 1)).view(-1, self.k, WIDTH).sum(1)

    def sorted_rows(self, x: torch.Tensor, factors: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        by_expert, order = torch.sort(ids.reshape(-1))
        counts = torch.histc(by_expert.float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
        ends = counts.cumsum(0, dtype=torch.int32)
        multiply = torch.ops.transformers.grouped_mm_fallback
        hidden = multiply(x[order // self.k], self.up, ends)
        if self.up_bias is not None:
            hidden = hidden + self.up_bias[by_expert]
        result = multiply(self.activated(hidden), self.down.transpose(1, 2), ends)
        if self.down_bias is not None:
            result = result + self.down_bias[by_expert]
        result = result * factors.reshape(-1)[order].unsqueeze(-1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.size(0))
        return result[back].view(-1, self.k, WIDTH).sum(1)


@pytest.fixture(scope="module")
def grouped_product():
    """transformers defines the operator."""
    library = ensure_operators()
    pytest.importorskip("transformers.integrations.moe")
    return library


@pytest.mark.parametrize("way", ["grouped", "looked up"])
@pytest.mark.parametrize("k, gated, biased", [(2, True, False), (2, False, True), (1, True, True), (4, True, True)])
@pytest.mark.parametrize("tokens", [TOKENS, 1])
def test_experts(way: str, k: int, gated: bool, biased: bool, tokens: int, grouped_product):
    if way == "grouped" and tokens == k == 1:
        pytest.skip("one row is not sorted; torch multiplies it on the host")
    model, x = Experts(way, k, gated, biased), torch.randn(tokens, WIDTH)
    got, host, fusions = run(model, x)
    assert host == []
    assert "mixture of experts" in fusions or k == 1  # one weight per token is looked up
    assert_close(got, model(x))


def test_rows_that_others_read_stay(grouped_product):
    class Both(Experts):
        def looked_up(self, x, factors, ids):
            flat = ids.reshape(-1)
            hidden = torch.bmm(x.repeat_interleave(self.k, dim=0).unsqueeze(1), self.up[flat]).squeeze(1)
            result = torch.bmm(self.down[flat], self.activated(hidden).unsqueeze(-1)).squeeze(-1)
            return (result * factors.reshape(-1, 1)).view(-1, self.k, WIDTH).sum(1), result

    model, x = Both("looked up"), torch.randn(TOKENS, WIDTH)
    got, _, fusions = run(model, x)
    assert "mixture of experts" not in fusions
    for mine, theirs in zip(got, model(x)):
        assert_close(mine, theirs)


@pytest.mark.parametrize("wrong", ["another order", "another count"])
def test_lookalikes_of_experts_are_left(wrong: str, grouped_product):
    class Other(Experts):
        def sorted_rows(self, x, factors, ids):
            by_expert, order = torch.sort(ids.reshape(-1))
            most = EXPERTS - 1 if wrong == "another order" else EXPERTS
            ends = torch.histc(by_expert.float(), bins=EXPERTS, min=0, max=most).cumsum(0, dtype=torch.int32)
            multiply = torch.ops.transformers.grouped_mm_fallback
            hidden = self.activated(multiply(x[order // self.k], self.up, ends))
            result = multiply(hidden, self.down.transpose(1, 2), ends) * factors.reshape(-1)[order].unsqueeze(-1)
            return (result if wrong == "another order" else result[torch.argsort(order)]).view(-1, self.k, WIDTH).sum(1)

    model, x = Other("grouped"), torch.randn(TOKENS, WIDTH)
    got, _, fusions = run(model, x)
    assert "mixture of experts" not in fusions
    assert_close(got, model(x))


# -- hand-written experts ---------------------------------------------------------------------------------------------


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH)) for _ in range(EXPERTS)]
        )


class ByMask(Own):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factors, ids = self.router(x).softmax(-1).topk(K)
        factors = factors / factors.sum(-1, keepdim=True)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            result = result + (factors * (ids == number)).sum(-1, keepdim=True) * expert(x)
        return result


class ByOneHot(Own):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factors, ids = self.router(x).softmax(-1).topk(K)
        choice = (F.one_hot(ids, EXPERTS).to(x.dtype) * factors.unsqueeze(-1)).sum(-2)
        result = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (result * choice.unsqueeze(-2)).sum(-1)


class ByScatter(Own):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.router(x)
        largest, ids = scores.topk(K, dim=-1)
        choice = torch.full_like(scores, float("-inf")).scatter(-1, ids, largest).softmax(-1)
        return sum(choice[..., number : number + 1] * expert(x) for number, expert in enumerate(self.experts))


@pytest.mark.parametrize("kind", [ByMask, ByOneHot, ByScatter])
def test_hand_written_experts(kind: type[Own]):
    model, x = kind(), torch.randn(2, TOKENS, WIDTH)
    got, host, _ = run(model, x)
    assert host == []
    assert_close(got, model(x))


# -- which experts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scored", [torch.sigmoid, lambda x: x.softmax(-1), lambda x: x], ids=["sigmoid", "softmax", "plain"]
)
def test_the_same_experts_are_chosen(scored):
    """The same but for ties: where the last that torch chooses and the first that it does not are less than a rounding
    of bfloat16, 2^-8 of the largest logit, apart in their logits."""
    router = nn.Linear(WIDTH, 16, bias=False)

    def choice(x: torch.Tensor) -> torch.Tensor:
        scores = scored(router(x))
        return torch.zeros_like(scores).scatter(1, scores.topk(4).indices, 1.0)

    x = torch.randn(512, WIDTH)
    got, host, _ = run(choice, x)
    assert host == []
    assert torch.equal(got.sum(1), torch.full((512,), 4.0))
    logits = router(x)
    ordered = logits.sort(descending=True).values
    is_tie = (ordered[:, 3] - ordered[:, 4]) < 2**-8 * logits.abs().amax(1)
    differs = (got != choice(x)).any(1)
    assert is_tie.float().mean() < 0.1
    assert not (differs & ~is_tie).any()


def test_observable_choices_stay_on_the_host():
    x = torch.randn(TOKENS, WIDTH)
    for function in (
        lambda x: (x @ x.t()).topk(3).indices,  # a result
        lambda x: torch.relu(x).topk(3).indices.eq(2),  # many zeros are equal
        lambda x: torch.gather(x, 1, (x @ x.t()).topk(3).indices),  # other things, in an order
    ):
        _, host, _ = run(function, x)
        assert "aten.topk.default" in host


# -- models ------------------------------------------------------------------------------------------------------------

SMALL = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}  # fmt: skip
LATENT = {"n_routed_experts": 8, "n_shared_experts": 1, "first_k_dense_replace": 1, "kv_lora_rank": 32, "n_group": 2,
          "q_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16, "topk_group": 1,
          "num_key_value_heads": 4}  # fmt: skip
MODELS = {
    "Mixtral": {"num_local_experts": 8},
    "Qwen2Moe": {"num_experts": 8, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 64},
    "Qwen3Moe": {"num_experts": 8, "moe_intermediate_size": 48, "head_dim": 16},
    "Olmoe": {"num_experts": 8},
    "DeepseekV3": {**LATENT, "moe_intermediate_size": 48},
    "GptOss": {"num_local_experts": 8, "head_dim": 16},
}


def build(name: str) -> nn.Module:
    import transformers

    config = getattr(transformers, f"{name}Config")(**{**SMALL, "num_experts_per_tok": 2, **MODELS[name]})
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, grouped_product):
    model, ids = build(name), torch.randint(0, 128, (1, 16))
    got, host, fusions = run(lambda ids: model(ids, use_cache=False).logits, ids)
    assert host == []
    assert "mixture of experts" in fusions
    assert pcc(got, model(ids, use_cache=False).logits) > 0.99


def test_prefill_and_decode_of_mixtral(grouped_product):
    from transformers import StaticCache

    model = build("Mixtral")

    def steps(compiled) -> list[torch.Tensor]:
        cache = StaticCache(config=model.config, max_cache_len=16)
        calls = [(torch.arange(7).view(1, 7), torch.arange(7)), (torch.tensor([[3]]), torch.tensor([7]))]
        return [compiled(ids, past_key_values=cache, cache_position=at).logits for ids, at in calls]

    options = TorchTtnnOption(cache_dir="", warn=False)
    got = steps(torch.compile(model, backend="ttnn", options=options))
    assert len(options.programs) == 2
    assert not [node for program in options.programs for node in program.graph.nodes if REASON.on(node)]
    for mine, theirs in zip(got, steps(model)):
        assert pcc(mine, theirs) > 0.99


# -- a value compared with some of its own ----------------------------------------------------------------------------

OWN_ELEMENTS = {
    "topk": lambda p: p >= p.topk(3).values[..., -1:],
    "beyond topk": lambda p: p > p.topk(3).values[..., -1:],
    "max": lambda p: p == p.max(-1, keepdim=True).values,
    "amax": lambda p: p >= p.amax(-1, keepdim=True),
    "amin": lambda p: p <= p.amin(-1, keepdim=True),
    "max of all": lambda p: p == p.max(),
    "sort": lambda p: p >= p.sort(-1, descending=True).values[..., 2:3],
    "kthvalue": lambda p: p <= p.kthvalue(3, -1, keepdim=True).values,
    "sort with places": lambda p: (lambda found: (p >= found.values[..., 2:3]) & (found.indices >= 0))(p.sort(-1)),
    "median": lambda p: p <= p.median(-1, keepdim=True).values,
    "gather": lambda p: p == p.gather(-1, p.argmax(-1, keepdim=True)),
    "column": lambda p: p >= p[..., 2:3],
    "looked up": lambda p: p >= p[:, torch.tensor([3])],
}


@pytest.mark.parametrize("score", ["linear", "softmax", "sigmoid"])
@pytest.mark.parametrize("name", OWN_ELEMENTS)
def test_a_value_compared_with_its_own_elements(name: str, score: str):
    """Both sides have the same precision, that of the accumulated sums: few different values become equal."""
    router, compare = nn.Linear(WIDTH, 16), OWN_ELEMENTS[name]
    function = {"linear": lambda y: y, "softmax": lambda y: y.softmax(-1), "sigmoid": torch.sigmoid}[score]

    def choose(x):
        p = function(router(x))
        return compare(p), p

    x = torch.randn(500, WIDTH)
    (chosen, p), _, _ = run(choose, x)
    assert torch.equal(chosen, compare(p))
    assert (chosen != choose(x)[0]).sum() <= 20
    # Where the host sorts, both sides are bfloat16; the error of the logits may swap a column with others.
    if name not in ("sort with places", "column", "looked up"):
        counts, wanted = chosen.sum(-1), choose(x)[0].sum(-1)
        assert (counts != wanted).float().mean() < 0.01
