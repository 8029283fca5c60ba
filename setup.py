"""Compile the record codec with mypyc where a C compiler is there; the same file runs interpreted where not."""

import os

from setuptools import setup

COMPILED = ["src/rota/protocol/records/fast.py"]

extensions = []
if os.environ.get("ROTA_COMPILE", "1") != "0":
    from mypyc.build import mypycify

    extensions = mypycify([*COMPILED, "--explicit-package-bases"])
    for extension in extensions:
        extension.optional = True
setup(ext_modules=extensions)
