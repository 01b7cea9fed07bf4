"""Fetches the data sets for training and testing: `python training/fetch_data.py mnist cifar10`."""

from torch_ttnn.zoo.trained.fetch import main

if __name__ == "__main__":
    raise SystemExit(main())
