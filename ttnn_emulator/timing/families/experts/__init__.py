"""Mixtures of experts: choosing experts, and adding up what they return."""
