"""Matrix products: the kernels around the matrix unit, and products in float32."""
