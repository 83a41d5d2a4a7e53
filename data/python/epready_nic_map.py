"""Gives every process of DeepEP's `Buffer` its own RDMA NIC, without changing DeepEP.

Loaded at interpreter start through epready_nic_map.pth. Does nothing until deep_ep is imported, and nothing at all unless
DEEP_EP_DEVICE_TO_HCA_MAPPING is set: a comma list of <cuda device>:<hca>[:<port>], device numbers as the driver counts them.
Before the first Buffer is made it sets NVSHMEM_ENABLE_NIC_PE_MAPPING=1 and NVSHMEM_HCA_LIST=<hca>:<port> for this process.
A device that the list lacks is an error that names it: a guessed NIC would halve the bandwidth in silence.
"""
import os
import sys

VARIABLE = "DEEP_EP_DEVICE_TO_HCA_MAPPING"


def parse(text):
    mapping = {}
    for item in text.split(","):
        item = item.strip()
        if not item:
            continue
        device, separator, hca = item.partition(":")
        if not separator or not device.strip().isdigit() or not hca.strip():
            raise ValueError(f"{VARIABLE}: '{item}' is not <device>:<hca>[:<port>]")
        mapping[int(device)] = hca.strip()
    return mapping


def physical_device(current, visible):
    """The driver's number of CUDA device `current`; UUIDs in CUDA_VISIBLE_DEVICES are left to the caller's order."""
    if not visible:
        return current
    names = [name.strip() for name in visible.split(",") if name.strip()]
    if current < len(names) and names[current].isdigit():
        return int(names[current])
    return current


def assign(current, environment):
    text = environment.get(VARIABLE, "").strip()
    if not text:
        return None
    mapping = parse(text)
    device = physical_device(current, environment.get("CUDA_VISIBLE_DEVICES", ""))
    if device not in mapping:
        raise KeyError(f"{VARIABLE} has no entry for GPU {device}; it has {sorted(mapping)}")
    hca = mapping[device]
    environment["NVSHMEM_ENABLE_NIC_PE_MAPPING"] = "1"
    environment["NVSHMEM_HCA_LIST"] = hca if ":" in hca else hca + ":1"
    return hca


def wrap(module):
    buffer = getattr(module, "Buffer", None)
    if buffer is None or getattr(buffer, "_epready_nic_map", False):
        return
    original = buffer.__init__

    def __init__(self, *args, **kwargs):
        import torch

        assign(torch.cuda.current_device(), os.environ)
        original(self, *args, **kwargs)

    buffer.__init__ = __init__
    buffer._epready_nic_map = True


class Finder:
    """Lets the normal import find deep_ep, then wraps its Buffer."""

    def find_spec(self, name, path=None, target=None):
        if name != "deep_ep":
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            wrap(module)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get(VARIABLE):
    sys.meta_path.insert(0, Finder())
