"""Predicted times compared with times that were measured on silicon."""
