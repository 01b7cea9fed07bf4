"""From captured graphs to programs: stages, what they work on, and how the results run."""
