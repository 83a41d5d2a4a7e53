# STAND-IN of the epready lab for DeepEP's setup: asks for the same environment, builds nothing for a GPU.
import os
import sys

from setuptools import setup

for name in ("CUDA_HOME", "TORCH_CUDA_ARCH_LIST"):
    if not os.environ.get(name):
        sys.exit(f"the stand-in wants {name}, as DeepEP does")
setup(name="deep_ep", version="1.2.1", packages=["deep_ep"])
