"""The rows of the zoo. To add a model, add one `ModelEntry` to the table of its kind."""

from torch_ttnn.zoo.tables import detection, encoders, generators, mixed, scenes, timm_vision, vision
from torch_ttnn.zoo.trained import entries as trained

ENTRIES = (
    *encoders.ENTRIES,
    *generators.ENTRIES,
    *mixed.ENTRIES,
    *vision.ENTRIES,
    *timm_vision.ENTRIES,
    *detection.ENTRIES,
    *scenes.ENTRIES,
    *trained.ENTRIES,
)
