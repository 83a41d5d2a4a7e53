# Writes stand-in wheels and the pages of a package index (PEP 503) into a folder. For the lab's image.
import base64
import hashlib
import os
import sys
import zipfile


def wheel(folder, name, version):
    module = name.replace("-", "_")
    files = {
        f"{module}/__init__.py": f'"""STAND-IN of the epready lab."""\n__version__ = "{version}"\n',
        f"{module}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{module}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text)}")
    record = f"{module}-{version}.dist-info/RECORD"
    files[record] = "\n".join(rows + [f"{record},,"]) + "\n"
    page = os.path.join(folder, "simple", name)
    os.makedirs(page, exist_ok=True)
    file = f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(page, file), "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
    with open(os.path.join(page, "index.html"), "a") as f:
        f.write(f'<a href="{file}">{file}</a>\n')


# setuptools is a real one, put beside these by provision; the rest of what a plan names is here.
for name, version in {"numpy": "2.1.0", "torch": "2.9.1", "nvidia-nvshmem-cu12": "3.5.19", "ninja": "1.11.1",
                      "packaging": "24.0", "wheel": "0.45.0"}.items():
    wheel(sys.argv[1], name, version)
