"""Fetches the data sets to train with and to test on: `python training/fetch_data.py mnist cifar10`."""

from torch_ttnn.zoo.trained.fetch import main

if __name__ == "__main__":
    raise SystemExit(main())
