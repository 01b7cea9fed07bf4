"""A script for reports: two matmuls, sharded tensors, a convolution, an error that it handles."""

import torch
import ttnn


def block(x, weight):
    hidden = ttnn.linear(x, weight, activation="relu", memory_config=ttnn.L1_MEMORY_CONFIG)
    rows = ttnn.create_sharded_memory_config(
        (256, 256), core_grid=ttnn.CoreGrid(y=8, x=1), strategy=ttnn.ShardStrategy.HEIGHT
    )
    sharded = ttnn.to_memory_config(hidden, rows)
    ttnn.deallocate(hidden)
    return ttnn.exp(sharded)


def main():
    torch.manual_seed(0)
    device = ttnn.open_device(device_id=0, l1_small_size=16384)
    x = ttnn.from_torch(torch.randn(1, 1, 256, 256), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    weight = ttnn.from_torch(torch.randn(256, 256), dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device)
    y = block(x, weight)
    print(ttnn.to_torch(y).shape)
    image = ttnn.from_torch(torch.randn(1, 1, 256, 32), dtype=ttnn.bfloat16, device=device)
    filters = ttnn.from_torch(torch.randn(32, 32, 3, 3), dtype=ttnn.bfloat16)
    seen = ttnn.conv2d(
        input_tensor=image, weight_tensor=filters, device=device, in_channels=32, out_channels=32, batch_size=1,
        input_height=16, input_width=16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1),
    )  # fmt: skip
    try:
        ttnn.matmul(seen, x)
    except RuntimeError:
        print("refused")
    del seen
    ttnn.close_device(device)


main()
