"""Pseudorandom numbers that a Rust test can repeat bit for bit, in any order and without state."""

import numpy as np


def bits(seed, place):
    """32 bits for a place of a sequence: the place plus `seed` times the golden ratio, mixed. Wraps as u32 does."""
    x = (np.asarray(place, np.uint64) + np.uint64(seed * 0x9E3779B9 & 0xFFFFFFFF)).astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    return x


def uniform(seed, count):
    """f32 in 0..1 for the first places: the upper 24 bits as a fraction, hence exact."""
    return (bits(seed, np.arange(count)) >> np.uint32(8)).astype(np.float32) / np.float32(1 << 24)
