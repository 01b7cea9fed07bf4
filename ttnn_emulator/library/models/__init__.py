"""`ttnn.model_preprocessing`: parameters of torch models as TT-NN tensors."""
