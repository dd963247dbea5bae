"""Restores settings that tests change."""

import pytest

import libnorm


@pytest.fixture(autouse=True)
def default_settings():
    """Each test begins and ends with the library's defaults."""
    yield
    libnorm.set_num_threads(0)
    libnorm.set_max_cpu_isa(None)
