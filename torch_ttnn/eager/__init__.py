"""`torch.device("ttnn")`: torch tensors that live on the device, and eager mode on them."""
