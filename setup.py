"""Puts `.env.example` into the package `config`, where `setup` finds it without a checkout.

All else about the build stands in pyproject.toml, which can name no file outside of a package.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

EXAMPLE = ".env.example"


class BuildWithExample(build_py):
    """The usual step, and one file more."""

    def run(self) -> None:
        """Copy the modules, the data of the packages, and the example."""
        super().run()
        if not self.editable_mode:
            self.copy_file(EXAMPLE, str(Path(self.build_lib, "config", EXAMPLE)))

    def get_source_files(self) -> list[str]:
        """What a source distribution needs."""
        return [*super().get_source_files(), EXAMPLE]


setup(cmdclass={"build_py": BuildWithExample})
