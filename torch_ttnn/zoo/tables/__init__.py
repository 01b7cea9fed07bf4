"""The rows of the zoo. To add a model, add one `ModelEntry` to the table of its kind."""

from torch_ttnn.zoo.tables import detection, encoders, generators, mixed, vision

ENTRIES = (*encoders.ENTRIES, *generators.ENTRIES, *mixed.ENTRIES, *vision.ENTRIES, *detection.ENTRIES)
