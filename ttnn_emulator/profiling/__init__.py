"""Profiles of what an emulated device did: the performance sheet, and the files of a report folder."""
