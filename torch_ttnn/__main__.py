"""`python -m torch_ttnn`: compile real models and show what happened."""

from torch_ttnn.demo import main

main()
