"""Elementwise operations of two and three operands, and gradients."""
