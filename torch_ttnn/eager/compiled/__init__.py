"""`torch.compile` over tensors on the device."""
