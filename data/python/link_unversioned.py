"""Makes libX.so beside libX.so.N for the NCCL and NVSHMEM wheels of the running environment: DeepEP's build asks the linker
for the plain name, and wheels carry the numbered one alone. Idempotent; prints what it made."""
import importlib.util
import pathlib
import sys

made = 0
for package, library in (("nvidia.nccl", "libnccl.so"), ("nvidia.nvshmem", "libnvshmem_host.so")):
    spec = importlib.util.find_spec(package)
    for root in list(spec.submodule_search_locations or []) if spec else []:
        folder = pathlib.Path(root) / "lib"
        numbered = sorted(folder.glob(library + ".*"))
        plain = folder / library
        if numbered and not plain.exists():
            plain.symlink_to(numbered[0].name)
            print(plain)
            made += 1
sys.exit(0)
