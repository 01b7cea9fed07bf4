"""A trained network classifies handwritten digits, with torch and compiled for the device.

python -m torch_ttnn.zoo.trained.fetch mnist
python examples/digits.py
"""

import torch

from torch_ttnn import zoo
from torch_ttnn.zoo.trained import images, networks

digits = images.mnist("test").first(100)
model = zoo.find("mnist-cnn-trained").build()
compiled = torch.compile(model, backend="ttnn")

with torch.no_grad():
    inputs = networks.mnist_input(digits.pixels)
    by_torch, by_device = model(inputs).argmax(1), compiled(inputs).argmax(1)

print(f"of {len(digits)} digits, torch classifies {(by_torch == digits.labels).sum()} correctly,", end=" ")
print(f"the device {(by_device == digits.labels).sum()}; they agree on {(by_torch == by_device).sum()}")
