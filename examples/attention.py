"""A TT-NN script written for a card. Without a card: python -m ttnn_emulator examples/attention.py"""

import torch
import ttnn

torch.manual_seed(0)
HEADS, TOKENS, WIDTH = 8, 96, 64

device = ttnn.open_device(device_id=0)
query, key, value = (torch.randn(1, HEADS, TOKENS, WIDTH) for _ in range(3))
on_device = [
    ttnn.from_torch(tensor, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    for tensor in (query, key, value)
]

attended = ttnn.transformer.scaled_dot_product_attention(*on_device, is_causal=True)
joined = ttnn.transformer.concatenate_heads(attended)

reference = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
reference = reference.transpose(1, 2).reshape(1, TOKENS, HEADS * WIDTH)
ours = ttnn.to_torch(joined).float()
pcc = torch.corrcoef(torch.stack([ours.flatten(), reference.flatten()]))[0, 1]
print(f"{list(joined.shape)} in {joined.dtype}, PCC with torch float32: {pcc:.4f}")
ttnn.close_device(device)
