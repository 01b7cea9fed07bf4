"""Seeds of cores, set by `ttnn.manual_seed` and used by `ttnn.sampling`."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

USERS, SKIP = 32, 2**32 - 1


@pytest.fixture
def sample(device):
    def row_major(values, dtype):
        return ttnn.from_torch(values, dtype=dtype, device=device)

    values = ttnn.from_torch(torch.randn(1, 1, USERS, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    places = row_major(torch.arange(64, dtype=torch.int32).expand(1, 1, USERS, 64), ttnn.int32)
    k, p = row_major(torch.full((USERS,), 30), ttnn.uint32), row_major(torch.ones(USERS), ttnn.bfloat16)
    temperature = row_major(torch.ones(USERS), ttnn.bfloat16)

    def run(**options) -> list[int]:
        return ttnn.to_torch(ttnn.sampling(values, places, k=k, p=p, temp=temperature, **options)).flatten().tolist()

    return run


def numbers(device, *values: int) -> ttnn.Tensor:
    return ttnn.from_torch(torch.tensor(values), dtype=ttnn.uint32, device=device)


def test_a_seed_repeats_draws_and_without_one_they_continue(device, sample) -> None:
    ttnn.manual_seed(seeds=42, device=device)
    first, second = sample(), sample()
    ttnn.manual_seed(seeds=1, device=device)
    sample(seed=7)
    ttnn.manual_seed(seeds=42, device=device)
    ttnn.manual_seed(seeds=SKIP, device=device)
    assert (sample(), sample()) == (first, second) and first != second
    assert sample(seed=5) == sample(seed=5) != sample(seed=6)


def test_users_have_separate_seeds(device, sample) -> None:
    ttnn.manual_seed(seeds=3, device=device)
    all_of_3 = sample()
    ttnn.manual_seed(seeds=4, device=device)
    ttnn.manual_seed(seeds=3, device=device, user_ids=5)
    assert sample()[5] == all_of_3[5]
    users, seeds = numbers(device, *range(USERS)), numbers(device, *range(1, USERS + 1))
    ttnn.manual_seed(seeds=seeds, user_ids=users)
    mapped = sample()
    assert mapped[2] == all_of_3[2]
    sample()
    ttnn.manual_seed(seeds=seeds, user_ids=users)
    assert sample() == mapped


def test_cores_have_separate_generators(device, sample) -> None:
    part = ttnn.CoreRangeSet([ttnn.CoreRange((1, 2), (7, 6))])
    ttnn.manual_seed(seeds=9, device=device, sub_core_grids=part)
    there = sample(sub_core_grids=part)
    ttnn.manual_seed(seeds=9, device=device)
    assert sample() == there


def test_seeds_in_a_tensor_refuse_a_single_user(device) -> None:
    with pytest.raises(RuntimeError, match="user_ids must not be provided as a scalar"):
        ttnn.manual_seed(seeds=numbers(device, 42), device=device, user_ids=7)
