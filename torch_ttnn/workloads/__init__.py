"""How models are traced, run with a backend, and measured with torch and on the device.

`trace` and `run` are the jobs of `torch-ttnn stat` and `torch-ttnn run`; `measure`, `agreement`, `timing` and
`program_counts` are what they and `torch_ttnn.results` measure with.
"""
