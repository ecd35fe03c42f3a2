"""Carries the program into the package: dist/cutepilot (make portable) or build/cutepilot (make)."""
import os
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = os.path.dirname(os.path.abspath(__file__))
os.makedirs(os.path.join(ROOT, "build-python"), exist_ok=True)  # beside Meson's folders, which git ignores


class Build(build_py):
    def run(self):
        super().run()
        for built in "dist/cutepilot", "build/cutepilot":
            if os.path.exists(os.path.join(ROOT, built)):
                folder = os.path.join(self.build_lib, "cutepilot", "bin")
                os.makedirs(folder, exist_ok=True)
                shutil.copy2(os.path.join(ROOT, built), folder)
                break


setup(cmdclass={"build_py": Build},
      options={"build": {"build_base": "build-python"}, "egg_info": {"egg_base": "build-python"}})
