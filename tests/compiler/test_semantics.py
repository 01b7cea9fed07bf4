"""A compiled model behaves like torch: aliases, mutations, modes, threads, several models and devices."""

from __future__ import annotations

import copy
import gc
import io
import threading

import pytest
import torch
from torch import nn

import torch_ttnn
import ttnn_emulator
from torch_ttnn.compiler.ir.metadata import REASON

WIDTH = 32


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(module, **options):
    return torch.compile(module, backend="ttnn", options=options or None)


def used(device) -> int:
    return ttnn_emulator.get_memory_view(device, ttnn_emulator.BufferType.DRAM).total_bytes_allocated_per_bank


def assert_near(got, want, tolerance=0.05):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


# -- inputs and outputs -----------------------------------------------------------------------------------------------


@torch.no_grad()
def test_an_input_changed_in_place_is_changed_for_the_caller():
    def function(x):
        x.add_(1)
        return x * 2

    x = torch.zeros(4, WIDTH)
    y = compiled(function)(x)
    assert torch.equal(x, torch.ones(4, WIDTH))
    assert torch.equal(y, torch.full((4, WIDTH), 2.0))


@torch.no_grad()
def test_a_view_of_a_copy_does_not_alias_the_input():
    x = torch.ones(4, WIDTH)
    copied, more = compiled(lambda x: (x.clone().view(WIDTH, 4), x + 1))(x)
    copied.zero_()
    assert torch.equal(x, torch.ones(4, WIDTH))
    assert torch.equal(more, torch.full((4, WIDTH), 2.0))


@torch.no_grad()
def test_a_view_of_an_input_beside_device_operations_in_warm_calls():
    run = compiled(lambda x, n: (x.flatten(2).transpose(1, 2), n.flatten(), n * 2))
    for start in range(3):
        x, n = torch.randn(1, 8, 3, 4), torch.arange(start, start + 12).reshape(3, 4)
        seen, flat, twice = run(x, n)
        assert torch.equal(seen, x.flatten(2).transpose(1, 2))
        assert torch.equal(flat, n.flatten())
        assert torch.equal(twice, n * 2)


@torch.no_grad()
def test_rearranged_inputs_keep_their_bits_and_are_not_uploaded():
    """Flattened tokens, masks and images that a graph returns with computed values."""

    def function(x, tokens, mask, y):
        return x.reshape(2, -1).t(), tokens.reshape(-1), mask.t().contiguous(), y * 2

    options = torch_ttnn.TorchTtnnOption()
    given = (torch.randn(6, 4).t(), torch.randint(99, (5, 3)).t(), torch.rand(3, 4) > 0.5, torch.randn(4, WIDTH))
    for _ in range(3):  # captured, traced, replayed
        got = torch_ttnn.compile(function, options=options)(*given)
        want = function(*given)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(got[:3], want))
        assert_near(got[3], want[3])
    (program,) = options.programs
    assert program.code.count("ttnn.from_torch(") == program.code.count("ttnn.to_torch(") == 1


@torch.no_grad()
def test_a_view_of_an_input_changed_in_place():
    def function(x):
        x[1:3].mul_(2)
        return x.sum()

    x = torch.ones(4, WIDTH)
    y = compiled(function)(x)
    assert x[:, 0].tolist() == [1, 2, 2, 1]
    assert y.item() == 6 * WIDTH


@torch.no_grad()
def test_two_inputs_that_are_one_tensor():
    def function(x, y):
        x.add_(1)
        return x + y

    x = torch.zeros(WIDTH)
    assert torch.equal(compiled(function)(x, x), torch.full((WIDTH,), 2.0))


@torch.no_grad()
def test_an_output_that_is_an_input_is_the_same_tensor():
    x = torch.ones(3)
    y, z = compiled(lambda x: (x, x + 1))(x)
    assert y.data_ptr() == x.data_ptr()
    assert z.tolist() == [2, 2, 2]


@torch.no_grad()
def test_an_output_that_is_a_view_of_an_input_shares_its_memory():
    x = torch.ones(4, 3)
    y = compiled(lambda x: (x.t(), x.sum()))(x)[0]
    y[0, 0] = 7
    assert x[0, 0] == 7


@torch.no_grad()
def test_constant_outputs_are_fresh_on_every_call():
    function = compiled(lambda x: (torch.arange(4), x + 1))
    first, _ = function(torch.ones(2))
    first.zero_()
    second, _ = function(torch.ones(2))
    assert second.tolist() == [0, 1, 2, 3]


@torch.no_grad()
def test_outputs_of_two_calls_do_not_share_memory():
    function = compiled(lambda x: x * 2)
    first = function(torch.ones(WIDTH))
    function(torch.full((WIDTH,), 5.0))
    assert torch.equal(first, torch.full((WIDTH,), 2.0))


@torch.no_grad()
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone(),
        lambda x: torch.cat([x, x[:0]]),
        lambda x: x.clone().t(),
        lambda x: (x.clone(), x.clone()),
        lambda x: (x * 2, x * 2),
        lambda x: (x * 2, (x * 2).clone()),
    ],
)
def test_results_are_distinct_tensors(function):
    """They alias neither the input nor each other, even if nothing is computed or two of them are equal."""
    x = torch.randn(3, 4)
    before = x.clone()
    results = torch.compile(function, backend="ttnn")(x)
    results = results if isinstance(results, tuple) else (results,)
    results[0].zero_()
    assert torch.equal(x, before)
    assert all(each.all() for each in results[1:])


STRIDED = {
    "transposed": lambda x: (x * 2).transpose(1, 2),
    "contiguous again": lambda x: (x * 2).permute(1, 0, 2).contiguous(),
    "first row": lambda x: (x[:1] * 2)[:, 0],  # dimensions of one element keep torch's strides too
    "first column": lambda x: (x * 2)[:, :, :1],
    "expanded": lambda x: (x * 2).sum(0, keepdim=True).expand(3, 5, 4),
}


@pytest.mark.parametrize("name", STRIDED)
@torch.no_grad()
def test_outputs_have_torchs_strides(name):
    x = torch.randn(3, 5, 4)
    want, run = STRIDED[name](x), compiled(STRIDED[name])
    for _ in range(3):
        got = run(x)
        assert got.stride() == want.stride()
        assert_near(got, want)


@torch.no_grad()
def test_empty_and_scalar_tensors():
    function = compiled(lambda x, s: (x * 2, s + 1, x.sum()))
    x, s, total = function(torch.ones(0, 4), torch.tensor(3.0))
    assert x.shape == (0, 4)
    assert s.shape == () and s.item() == 4
    assert total.item() == 0


@torch.no_grad()
def test_non_contiguous_and_expanded_inputs():
    function = compiled(lambda x, y: x + y)
    x, y = torch.arange(12.0).view(3, 4).t(), torch.ones(3).expand(4, 3)
    assert torch.equal(function(x, y), x + y)


@torch.no_grad()
def test_integer_inputs_beyond_32_bits_are_exact():
    function = compiled(lambda x: x + 1)
    assert function(torch.tensor([1, 2])).tolist() == [2, 3]
    assert function(torch.tensor([2**40, -(2**40)])).tolist() == [2**40 + 1, -(2**40) + 1]


@torch.no_grad()
def test_float64_and_complex_stay_on_the_host():
    options = torch_ttnn.TorchTtnnOption()
    function = torch.compile(lambda x: x * 2, backend="ttnn", options=options)
    x = torch.rand(5, dtype=torch.float64)
    assert torch.equal(function(x), x * 2)
    reasons = [REASON[node] for node in options._out_fx_graphs[0].nodes if REASON.on(node)]
    assert reasons == ["float64 has no counterpart on the device"]


def test_complex_constants_of_cached_programs(tmp_path):
    def function(x):
        return torch.view_as_real(torch.complex(x, x) * (2 - 1j))

    x = torch.rand(5)
    for _ in range(2):  # compiled, then read from the cache
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="ttnn", options={"cache_dir": str(tmp_path), "warn": False})
        torch.testing.assert_close(compiled(x), function(x), rtol=2**-7, atol=2**-7)


# -- weights ----------------------------------------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.mul_(2),
        lambda w: w.data.mul_(2),
        lambda w: w.data.__setitem__((0, 0), 30.0),
        lambda w: setattr(w, "data", torch.randn(WIDTH, WIDTH)),
        lambda w: w.detach().view(-1)[:5].fill_(9),
    ],
    ids=["in place", "data in place", "one element", "data replaced", "through a view"],
)
def test_a_changed_weight_is_uploaded_again(change):
    model = nn.Linear(WIDTH, WIDTH, bias=False)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    before = function(x)
    change(model.weight)
    after = function(x)
    assert_near(after, model(x), 0.2)
    assert not torch.equal(before, after)


@torch.no_grad()
def test_an_unchanged_weight_is_uploaded_once():
    options = torch_ttnn.TorchTtnnOption()
    model = nn.Linear(WIDTH, WIDTH)
    function = torch.compile(model, backend="ttnn", options=options)
    for _ in range(3):
        function(torch.randn(4, WIDTH))
    assert options.programs[0].weights.uploads == 2
    model.weight.data_ptr()  # moves the memory, but changes no value
    function(torch.randn(4, WIDTH))
    assert options.programs[0].weights.uploads == 2


@torch.no_grad()
def test_weights_in_memory_not_allocated_by_torch():
    model = nn.Linear(WIDTH, WIDTH, bias=False)
    numbers = torch.randn(WIDTH, WIDTH).numpy()
    model.weight.data = torch.from_numpy(numbers)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    assert_near(function(x), model(x), 0.2)
    numbers *= 3
    assert_near(function(x), model(x), 0.5)


@torch.no_grad()
def test_load_state_dict_and_optimizer_steps():
    model, other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    function(x)
    model.load_state_dict(other.state_dict())
    assert_near(function(x), other(x))


@torch.no_grad()
def test_two_models_of_one_class_are_independent():
    first, second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    one, two = compiled(first), compiled(second)
    assert_near(one(x), first(x))
    assert_near(two(x), second(x))
    assert_near(one(x), first(x))


@torch.no_grad()
def test_dropping_the_model_frees_its_weights():
    with ttnn_emulator.open_device(device_id=0) as device:
        model = nn.Linear(256, 256)
        function = compiled(model, device=device)
        function(torch.randn(4, 256))
        assert used(device) > 0
        del model, function
        gc.collect()
        assert used(device) == 0


@torch.no_grad()
def test_two_devices_in_one_process():
    model = nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    with ttnn_emulator.open_device(device_id=0) as one, ttnn_emulator.open_device(device_id=1) as two:
        for device in (one, two):
            torch._dynamo.reset()
            function = compiled(model, device=device)
            assert_near(function(x), model(x))
            assert used(device) > 0


@torch.no_grad()
def test_the_uncompiled_model_can_be_copied_and_saved():
    model = nn.Linear(WIDTH, WIDTH)
    x = torch.randn(4, WIDTH)
    function = compiled(model)
    function(x)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    with torch.serialization.safe_globals([nn.Linear]):
        loaded = torch.load(buffer, weights_only=True)
    for reference in (copy.deepcopy(model), loaded):
        assert torch.equal(reference(x), model(x))
    assert_near(function(x), model(x))


@torch.no_grad()
def test_several_threads():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    function = compiled(model)
    function(torch.randn(4, WIDTH))
    inputs = [torch.randn(4, WIDTH) for _ in range(8)]
    wrong = []

    def work(x):
        with torch.no_grad():
            for _ in range(5):
                if not torch.allclose(function(x), model(x), rtol=0.1, atol=0.1):
                    wrong.append(x)

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- modes ------------------------------------------------------------------------------------------------------------


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.relu(self.norm(self.linear(x))))


def test_batch_norm_keeps_its_statistics():
    torch.manual_seed(0)
    model = Normed().train()
    model.drop.p = 0.0
    reference = copy.deepcopy(model)
    function = compiled(model)
    for _ in range(3):
        x = torch.randn(16, WIDTH)
        function(x)
        reference(x)
    assert_near(model.norm.running_mean, reference.norm.running_mean)
    assert_near(model.norm.running_var, reference.norm.running_var)
    assert model.norm.num_batches_tracked == 3
    model.eval(), reference.eval()
    x = torch.randn(16, WIDTH)
    assert_near(function(x), reference(x), 0.1)  # eval-mode BatchNorm outside no_grad
    with torch.inference_mode():
        assert_near(function(x), reference(x), 0.1)


def test_gradients_are_correct_at_every_step():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8))
    reference = copy.deepcopy(model)
    function = compiled(model)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, reference)]
    for _ in range(4):
        x, y = torch.randn(16, WIDTH), torch.randn(16, 8)
        for run, optimizer in zip((function, reference), optimizers):
            optimizer.zero_grad()
            nn.functional.mse_loss(run(x), y).backward()
        for mine, theirs in zip(model.parameters(), reference.parameters()):
            scale = theirs.grad.abs().max()
            assert (mine.grad - theirs.grad).abs().max() <= 0.05 * scale
        for optimizer in optimizers:
            optimizer.step()


def test_dropout_in_training_drops_and_scales():
    model = nn.Dropout(0.25).train()
    function = compiled(model)
    torch.manual_seed(0)
    y = function(torch.ones(200, 100))
    kept = y != 0
    assert 0.73 < kept.float().mean() < 0.77
    assert_near(y[kept], torch.full_like(y[kept], 1 / 0.75), 0.01)
    assert not torch.equal(function(torch.ones(200, 100)), y)


@torch.no_grad()
def test_autocast_regions():
    model = nn.Linear(WIDTH, WIDTH)

    def function(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = model(x)
        return y, y.float() + 1

    x = torch.randn(4, WIDTH)
    got, want = compiled(function)(x), function(x)
    assert got[0].dtype is torch.bfloat16
    for mine, theirs in zip(got, want):
        assert_near(mine, theirs)


@torch.no_grad()
def test_a_key_value_cache_in_a_buffer():
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cache", torch.zeros(1, 8, WIDTH))

        def forward(self, x, position):
            self.cache.index_copy_(1, position, x)
            return self.cache.sum(1)

    model = Cached()
    reference = copy.deepcopy(model)
    function = compiled(model)
    for step in range(3):
        x = torch.randn(1, 1, WIDTH)
        assert_near(function(x, torch.tensor([step])), reference(x, torch.tensor([step])))
    assert_near(model.cache, reference.cache, 0.01)


@torch.no_grad()
def test_a_buffer_written_by_every_call_is_not_a_weight():
    """A changed weight is prepared again and its trace captured again, which must not happen for every token."""

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)
            self.register_buffer("total", torch.zeros(1, WIDTH))

        def forward(self, x):
            self.total += self.layer(x)
            return self.total * 2

    model = Counted()
    reference = copy.deepcopy(model)
    options = torch_ttnn.TorchTtnnOption()
    function = torch.compile(model, backend="ttnn", options=options)
    traces = []
    for step in range(4):
        if step == 2:
            model.total.zero_(), reference.total.zero_()
        x = torch.randn(1, WIDTH)
        assert_near(function(x), reference(x))
        traced = options.programs[0]._traced
        traces.append((options.programs[0].weights.uploads, traced and traced._trace))
    assert_near(model.total, reference.total)
    assert len(set(traces)) == 1
    assert len(options.programs[0].lowered.statics) == 2


@torch.no_grad()
def test_a_program_whose_trace_does_not_fit_runs_without_one(caplog):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    with ttnn_emulator.open_device(device_id=0, l1_small_size=16384, trace_region_size=64) as device:
        function = compiled(model, device=device)
        for _ in range(3):
            x = torch.randn(3, WIDTH)
            assert_near(function(x), model(x))
        assert caplog.text.count("without a trace") == 1
        assert "trace region of 64 B" in caplog.text


@torch.no_grad()
@pytest.mark.parametrize("dynamic", [True, None], ids=["dynamic", "automatic"])
def test_changing_shapes(dynamic):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    function = torch.compile(model, backend="ttnn", dynamic=dynamic)
    for batch in (1, 3, 5, 3, 8):
        x = torch.randn(batch, 7, WIDTH)
        assert_near(function(x), model(x))


@torch.no_grad()
def test_programs_of_changing_shapes_equal_those_of_fixed_ones():
    found = []
    for dynamic in (False, True):
        torch._dynamo.reset()
        options = torch_ttnn.TorchTtnnOption()
        torch.compile(nn.Linear(WIDTH, WIDTH), backend="ttnn", dynamic=dynamic, options=options)(torch.ones(3, WIDTH))
        found.append([node.target for node in options.programs[0].captured.graph.nodes if node.op == "call_function"])
    assert found[0] == found[1]


@torch.no_grad()
def test_symbolic_sizes_in_arithmetic_and_shapes():
    def function(x):
        n = x.shape[0]
        return (x.reshape(n * 2, -1) * n).view(n, 2, -1) + torch.arange(n)[:, None, None]

    run = torch.compile(function, backend="ttnn", dynamic=True)
    for n in (2, 5, 9):
        x = torch.randn(n, 6)
        assert_near(run(x), function(x), 0.1)


@torch.no_grad()
def test_many_shapes_keep_the_cache_bounded_and_log_a_hint(caplog):
    options = torch_ttnn.TorchTtnnOption(max_programs=2)
    run = torch.compile(lambda x: x + 1, backend="ttnn", dynamic=True, options=options)
    for n in range(3, 8):
        assert torch.equal(run(torch.zeros(n)), torch.ones(n))
    assert "max_programs" in caplog.text
    assert len(options.programs) == len(options._out_fx_graphs) == 2


@torch.no_grad()
def test_an_evicted_program_frees_its_weights():
    model = nn.Linear(256, 256)
    with ttnn_emulator.open_device(device_id=0) as device:
        run = torch.compile(model, backend="ttnn", dynamic=True, options={"device": device, "max_programs": 1})
        run(torch.randn(3, 256))
        one = used(device)
        for length in range(4, 9):
            run(torch.randn(length, 256))
        gc.collect()
        assert used(device) <= one


# -- interruptions -----------------------------------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("operation", ["from_torch", "linear"])
@pytest.mark.parametrize("call", [1, 3, 5])
def test_an_interrupted_call_can_be_repeated(monkeypatch, operation, call):
    """Interrupted while weights are prepared, in the first run, or while the trace is captured."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))
    x = torch.randn(4, WIDTH)
    with ttnn_emulator.open_device(device_id=0) as device:
        function = compiled(model, device=device)
        calls = iter(range(1, 1000))
        called = getattr(ttnn_emulator, operation)

        def interrupted(*args, **kwargs):
            if next(calls) == call:
                raise KeyboardInterrupt
            return called(*args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(ttnn_emulator, operation, interrupted)
            with pytest.raises(KeyboardInterrupt):
                function(x)
        for _ in range(3):
            assert_near(function(x), model(x))


@torch.no_grad()
def test_two_programs_of_one_device_start_in_two_threads():
    models = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)) for _ in range(4)]
    x = torch.randn(4, WIDTH)
    wrong = []

    def work(model):
        with torch.no_grad():
            function = torch_ttnn.compile(model)
            for _ in range(5):
                if not torch.allclose(function(x), model(x), rtol=0.1, atol=0.1):
                    wrong.append(model)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- options ----------------------------------------------------------------------------------------------------------


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(Exception, match="unknown option 'devise'; known are device, precision"):
        torch.compile(lambda x: x + 1, backend="ttnn", options={"devise": 0})(torch.ones(2))


@torch.no_grad()
def test_no_options_a_dict_and_the_object():
    for options in (None, {"precision": "float32"}, torch_ttnn.TorchTtnnOption()):
        for backend in ("ttnn", torch_ttnn.backend):
            torch._dynamo.reset()
            run = torch.compile(lambda x: x + 1, backend=backend, options=options)
            assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))


@torch.no_grad()
def test_float32_stays_float32_if_asked():
    x = torch.randn(100)
    got = torch.compile(lambda x: x * 1.2345, backend="ttnn", options={"precision": "float32"})(x)
    torch.testing.assert_close(got, x * 1.2345, rtol=1e-6, atol=0)


@torch.no_grad()
def test_graphs_contain_the_library_functions():
    options = torch_ttnn.TorchTtnnOption()
    torch.compile(lambda x, y: x @ y, backend="ttnn", options=options)(torch.ones(32, 32), torch.ones(32, 32))
    targets = [node.target for node in options._out_fx_graphs[0].nodes if node.op == "call_function"]
    assert options.programs[0].target.ttnn.matmul in targets


@torch.no_grad()
def test_exported_programs():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    x = torch.randn(4, WIDTH)
    exported = torch.export.export(model, (x,))
    assert_near(torch_ttnn.compile(exported)(x), model(x))


@torch.no_grad()
def test_an_expanded_output():
    y = compiled(lambda x: (x + 1).expand(4, 3, 5))(torch.ones(3, 1))
    assert torch.equal(y, torch.full((4, 3, 5), 2.0))
    assert y.stride()[0] == 0


@torch.no_grad()
def test_a_mask_of_the_least_float32_masks_evenly():
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.full((4,), torch.finfo(torch.float32).min))

        def forward(self, x, mask):
            return torch.softmax(x + self.mask, -1), torch.softmax(x + mask, -1), x + self.mask

    model = Masked()
    even, also_even, least = compiled(model)(torch.zeros(2, 4), model.mask.clone())
    assert torch.equal(even, torch.full((2, 4), 0.25))
    assert torch.equal(also_even, torch.full((2, 4), 0.25))
    assert least.isfinite().all()
