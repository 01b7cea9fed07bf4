"""Text generation: static caches on the device, one program per bucket of prompt lengths and one for every next token."""
