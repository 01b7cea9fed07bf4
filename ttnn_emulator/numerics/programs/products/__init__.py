"""Matrix products around the matrix unit, and in float32."""
