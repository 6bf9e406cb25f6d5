"""A hardware with a few sizes of its buffer, for outer searches of a second."""

TINY = """
kind = "hardware"
name = "tiny-space"
extends = "small"
technology = "12nm-recommended"
constraints = ["Buffer.capacity <= 128 * 16"]
levels.Buffer.capacity = { choices = ["32 words", "64 words", "128 words", "256 words"] }
levels.Buffer.fanout = { low = 2, high = 8, factor = 2 }
"""
