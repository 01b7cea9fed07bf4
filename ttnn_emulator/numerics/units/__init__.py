"""The units of a core: matrix unit, vector unit, packer, and the core that drives them."""
