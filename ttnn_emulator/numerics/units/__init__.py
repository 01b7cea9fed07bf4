"""The units of a core: matrix unit, vector unit, and the core that drives them."""
