"""How long tests wait: so long that only what hangs exceeds it, however slow the machine and whatever else it does."""

HANG_SECONDS = 3600.0
