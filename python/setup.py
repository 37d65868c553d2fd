"""The wheel of the package vramlab; scripts/wheel calls it where libraries, data and sources lie together."""

import glob
import os

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    """The libraries are called through ctypes: one wheel for every Python, but for this kind of machine."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


DATA = [os.path.relpath(name, "vramlab") for name in glob.glob("vramlab/share/**", recursive=True) if os.path.isfile(name)]

setup(
    name="vramlab", version=os.environ["VRAMLAB_VERSION"], license="Apache-2.0", python_requires=">=3.9",
    description="Policies for the memory of GPUs beside a real PyTorch program, and simulations of them",
    packages=["vramlab"], py_modules=["vramlab_recorder"],
    package_data={"vramlab": ["py.typed", "*.so*", *DATA]}, distclass=WithLibrary,
    cmdclass={"bdist_wheel": PlatformWheel})
