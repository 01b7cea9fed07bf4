"""Tests of the profiles that a run leaves."""
