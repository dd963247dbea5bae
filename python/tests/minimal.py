"""An array library for tests that has DLPack and nothing else."""

import sys

import numpy as np


class Immutable:
    """An immutable array that is not exported as read-only."""

    def __init__(self, array, legacy=False, device=(1, 0), refuses=None):
        self.array, self.legacy, self.device, self.refuses = array, legacy, device, refuses
        self.lent = 0

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.lent += 1
        if self.refuses:
            raise BufferError(self.refuses)
        if self.legacy:
            if options:
                raise TypeError("__dlpack__() takes no keyword arguments")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**options)

    def holders(self):
        """The number of references to the array besides the caller's."""
        return sys.getrefcount(self.array) - 1


class Array(Immutable):
    """A mutable array."""

    def __setitem__(self, index, value):
        self.array[index] = value


# An array of a module that has no from_dlpack.
METHODS = ("__init__", "__dlpack__", "__dlpack_device__")
Homeless = type("Homeless", (), {name: getattr(Immutable, name) for name in METHODS})
Homeless.__module__ = "sys"


def from_dlpack(lender):
    """An array that shares the memory."""
    return Array(np.from_dlpack(lender))
