"""The chip's arithmetic: number formats, what the packer does, the matrix unit and the vector unit."""
