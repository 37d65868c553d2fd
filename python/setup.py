"""The wheel of the package vramlab; scripts/wheel calls it where library and sources lie together."""

import os

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    """The library is called through ctypes: one wheel for every Python, but for this kind of machine."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(
    name="vramlab", version=os.environ["VRAMLAB_VERSION"], license="Apache-2.0", python_requires=">=3.9",
    description="Policies for the memory of GPUs beside a real PyTorch program, the same that vramlab simulates",
    packages=["vramlab"], py_modules=["vramlab_recorder"],
    package_data={"vramlab": ["py.typed", "*.so*"]}, distclass=WithLibrary,
    cmdclass={"bdist_wheel": PlatformWheel})
