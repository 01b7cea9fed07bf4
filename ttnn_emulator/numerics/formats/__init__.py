"""Number formats: how values of each dtype are represented, cast and packed."""
