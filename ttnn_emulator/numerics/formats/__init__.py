"""Number formats: how values of each dtype are held, cast and packed."""
