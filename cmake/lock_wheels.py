#!/usr/bin/env python3
"""Writes data/wheels/ID.toml: every wheel that the given requirements bring in, from uv's resolution.

    uv pip compile --universal --python-version 3.10 --format pylock.toml -o pylock.x.toml REQUIREMENTS
    python3 cmake/lock_wheels.py ID OF pylock.x.toml > data/wheels/ID.toml

Kept are Linux wheels for x86_64 and aarch64 and CPython 3.10 to 3.14 as glibc 2.28 takes them; each package with
the Pythons and machines that need it. Run by whoever adds a release; the program never runs it.
Needs Python 3.11 and the package `packaging`.
"""
import datetime
import re
import sys
import tomllib

from packaging.markers import Marker

PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
MACHINES = ["x86_64", "aarch64"]


def holds(marker, python, machine):
    return not marker or Marker(marker).evaluate(
        {"python_version": python, "python_full_version": python + ".5", "platform_machine": machine,
         "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "implementation_name": "cpython",
         "platform_python_implementation": "CPython"})


def fits(file, python, machine):
    tags, abi, platforms = file[:-4].split("-")[-3:]
    tag = "cp" + python.replace(".", "")
    if tag not in tags.split(".") or abi != tag:
        older = re.fullmatch(r"cp3(\d+)", tags)
        stable = abi == "abi3" and older and int(older[1]) <= int(python[2:])
        if not stable and not (abi == "none" and re.search(r"\bpy3\b", tags.replace(".", " "))):
            return False
    if platforms == "any":
        return True
    glibc = [int(m[1]) for m in re.finditer(r"manylinux_2_(\d+)_" + machine, platforms)]
    glibc += [17] if "manylinux2014_" + machine in platforms else []
    glibc += [12] if "manylinux2010_" + machine in platforms else []
    glibc += [5] if "manylinux1_" + machine in platforms else []
    return bool(glibc) and min(glibc) <= 28


def span(needed):
    """The marker that says for which Pythons and machines a package is needed; empty: for all."""
    pythons = [p for p in PYTHONS if any((p, m) in needed for m in MACHINES)]
    machines = [m for m in MACHINES if any((p, m) in needed for p in PYTHONS)]
    if needed != {(p, m) for p in pythons for m in machines}:
        sys.exit("a package's Pythons differ between machines; say it by hand")
    parts = []
    if pythons[0] != PYTHONS[0]:
        parts.append(f"python_version >= '{pythons[0]}'")
    if pythons[-1] != PYTHONS[-1]:
        parts.append(f"python_version < '{PYTHONS[PYTHONS.index(pythons[-1]) + 1]}'")
    if len(machines) == 1:
        parts.append(f"platform_machine == '{machines[0]}'")
    return " and ".join(parts)


def main(name, of, path):
    with open(path, "rb") as f:
        doc = tomllib.load(f)
    rows = []
    for p in doc["packages"]:
        needed, files, size = set(), {}, 0
        for python in PYTHONS:
            for machine in MACHINES:
                if not holds(p.get("marker"), python, machine):
                    continue
                for w in p.get("wheels", []):
                    file = w["url"].rsplit("/", 1)[1].replace("%2B", "+")
                    if fits(file, python, machine):
                        needed.add((python, machine))
                        files[file] = w["hashes"]["sha256"]
                        size = max(size, w["size"] if machine == MACHINES[0] else 0)
        if files:
            rows.append((size, p["name"], p["version"], span(needed), files))
    # Large ones first: several installers side by side then end at about the same time.
    rows.sort(key=lambda r: (-r[0], r[1], r[2]))
    today = datetime.date.today().isoformat()
    print(f"# What `{of}` brings in from the package index, file by file. Written by cmake/lock_wheels.py.")
    print(f'id = "{name}"\nof = "{of}"\nsource = ["{today} wheel-metadata resolved with uv for CPython 3.10 to 3.14"]')
    for size, package, version, marker, files in rows:
        print(f'\n[[wheel]]\nrequirement = "{package}=={version}"')
        if marker:
            print(f'marker = "{marker}"')
        print("files = [")
        for file in sorted(files):
            print(f'  "{file} {files[file]}",')
        print("]")


main(*sys.argv[1:])
