"""Text generation: a static cache on the device, a program per bucket of prompt lengths, one for all next tokens."""
