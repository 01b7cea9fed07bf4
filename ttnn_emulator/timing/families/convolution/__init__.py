"""Convolutions, pools and other operations on images."""
