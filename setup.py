"""Builds the pure-Python wheel; everything it says is in pyproject.toml."""

from setuptools import setup

setup()
