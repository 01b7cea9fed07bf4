"""Reading and writing by index, embeddings among them."""

import pytest
import torch

from tests.compiler.against_torch import check, run
from tests.compiler.lowering.moving import moves, numbers

F = torch.nn.functional
aten = torch.ops.aten
I = torch.tensor  # noqa: E741


# -- reading ----------------------------------------------------------------------------------------------------------


def test_two_index_tensors_both_count():
    out = moves(lambda x, i, j: x[i, j], numbers([5, 7]), I([0, -1, 1, 4]), I([2, 5, -7, 0]))
    assert out.device_ops == ["ttnn.moreh_getitem"]


def test_indices_that_are_not_adjacent_come_first():
    moves(lambda x, i, j: x[i, :, j], numbers([3, 4, 7]), I([0, -1]), I([2, 5]))
    moves(lambda x, i, j: x[:, i, j], numbers([3, 4, 7, 2]), I([[0], [-1]]), I([2, 5, -7]))


def test_the_last_token_of_every_sentence():
    """CLIP: one index is constant, the other is the result of an argmax."""

    def pooled(x, ends):
        return x[torch.arange(3), ends]

    assert moves(pooled, numbers([3, 10, 32]), I([4, 9, 0])).device_ops == ["ttnn.moreh_getitem"]


def test_regular_indices_become_slices():
    assert moves(lambda x: x[:, torch.arange(1, 9, 2)], numbers([3, 9])).device_ops == ["ttnn.slice"]
    assert moves(lambda x: x[I([2])], numbers([3, 9])).device_ops == ["ttnn.slice"]


def test_nearest_pixels_are_repeated():
    def enlarged(x):
        rows, columns = torch.arange(8), torch.arange(15)
        return x[:, :, (rows // 2)[:, None], columns // 3]

    assert moves(enlarged, numbers([1, 3, 4, 5])).device_ops == ["ttnn.repeat_interleave", "ttnn.repeat_interleave"]


def test_masks_stay_on_the_host():
    mask = numbers([4], torch.bool)
    with pytest.raises(Exception, match=r"data-dependent|dynamic"):
        run(lambda x, mask: x[mask], numbers([4]), mask)


def test_an_index_out_of_range_that_is_known_raises_torchs_error():
    with pytest.raises(IndexError):
        run(lambda x: aten.index.Tensor(x, [torch.full((2,), 5) - 0]), numbers([3, 4]))


def test_float32_is_read_exactly():
    check(lambda x, i: x[:, i], torch.randn(3, 7), I([6, 0]), precision="float32", relative=0, absolute=0)


def test_float16_values_are_rounded_once():
    check(lambda x, i: x[i], torch.randn(5, 9), I([4, 4, 0]), relative=0.004)


def test_gather_along_each_dimension():
    x = numbers([3, 4, 5])
    for dim in range(-3, 3):
        index = torch.randint(0, x.shape[dim], (2, 3, 4))
        moves(lambda x, i: x.gather(dim, i), x, index)  # noqa: B023


def test_token_type_ids_are_gathered():
    """BERT expands a buffer and gathers it by position."""
    moves(lambda x, i: x.expand(2, 12).gather(1, i), numbers([1, 12], torch.int64), torch.randint(0, 12, (2, 9)))


def test_a_triangle_of_infinities():
    x = torch.full((3, 5), float("-inf"))
    moves(lambda x: x.triu(1), x)
    moves(lambda x: x.tril(-1), numbers([2, 4, 4], torch.int64))


# -- writing ----------------------------------------------------------------------------------------------------------


def test_a_key_is_written_into_its_cache():
    """One slice at a runtime index: a `where`, with no scatter and no permutation."""
    out = moves(
        lambda cache, i, key: cache.index_copy(2, i, key),
        numbers([1, 2, 16, 32]),
        I([5]),
        numbers([1, 2, 1, 32], seed=1),
    )
    assert out.device_ops == ["ttnn.eq", "ttnn.where"]


def test_a_slice_at_a_constant_index_is_concatenated():
    out = moves(
        lambda x, y: aten.index_put(x, [None, torch.tensor([2])], y), numbers([3, 7, 4]), numbers([3, 1, 4], seed=1)
    )
    assert out.device_ops == ["ttnn.slice", "ttnn.slice", "ttnn.concat"]


def test_repeated_indices_accumulate():
    moves(
        lambda x, i, y: x.index_put((i,), y, accumulate=True), numbers([3, 5]), I([0, -1, 0]), numbers([3, 5], seed=1)
    )
    moves(lambda x, i, y: x.index_add(1, i, y), numbers([3, 5]), I([4, 0, 4]), numbers([3, 3], seed=1).clamp(-9, 9))


def test_a_masked_value_is_selected():
    x = numbers([3, 5])
    x[0, 0] = float("inf")
    out = moves(lambda x, mask, y: x.index_put((mask,), y), x, numbers([3, 5], torch.bool), torch.tensor(4.0))
    assert out.device_ops == ["ttnn.where"]
    moves(lambda x, mask, y: x.index_put((mask,), y), x, numbers([3], torch.bool), torch.tensor(4.0))


def test_values_by_a_mask_stay_on_the_host():
    mask = I([True, False, True])
    out = check(lambda x, m, y: x.index_put((m,), y), numbers([3]), mask, numbers([2], seed=1), on_device=False)
    assert "depends on its values" in next(iter(out.host_ops.values()))


def test_the_largest_of_several_stays_on_the_host():
    out = check(
        lambda x, i, y: x.scatter_reduce(0, i, y, "amax"), numbers([3]), I([0, 0, 2]), numbers([3], seed=1),
        on_device=False,
    )  # fmt: skip
    assert "amax" in next(iter(out.host_ops.values()))


def test_sums_that_wrap_around_stay_on_the_host():
    x, y = torch.tensor([250, 3], dtype=torch.uint8), torch.tensor([9, 1], dtype=torch.uint8)
    out = check(lambda x, i, y: x.scatter_add(0, i, y), x, I([0, 1]), y, on_device=False)
    assert "wrap" in next(iter(out.host_ops.values()))


def test_the_gradient_of_an_index():
    def gradient(g, i):
        return aten.index_put(torch.zeros(4, 5), [None, i], g, True)

    moves(gradient, numbers([4, 3]).clamp(-60, 60), I([0, 3, 3]))


# -- embeddings -------------------------------------------------------------------------------------------------------


def test_embedding_accepts_any_tokens():
    out = moves(lambda w, i: F.embedding(i, w), numbers([10, 64]), torch.randint(0, 10, (2, 32)), statics=(0,))
    assert out.device_ops == ["ttnn.embedding"]
    assert "ttnn.typecast" not in out.program.code


def test_tokens_with_other_users_keep_their_sign():
    moves(lambda w, i: (F.embedding(i, w), i + -5), numbers([10, 8]), torch.randint(0, 7, (2, 5)), statics=(0,))


def test_gradients_of_equal_tokens_accumulate():
    grad = torch.randn(4, 64, 8)
    tokens = torch.zeros(4, 64, dtype=torch.int64)
    check(lambda g, i: aten.embedding_dense_backward(g, i, 3, -1, False), grad, tokens)


def test_the_padding_token_gets_no_gradient():
    grad, tokens = numbers([6, 4]).clamp(-3, 3), I([0, 1, 2, 1, 1, 0])
    out = moves(lambda g, i: aten.embedding_dense_backward(g, i, 3, 1, False), grad, tokens)
    assert not out.outputs[0][1].any()
