"""A short set of what Python programs do, for `umlaut bench python`."""
import json
import os
import re
import tempfile


def numbers():
    primes = bytearray([1]) * 300_000
    for n in range(2, 548):
        if primes[n]:
            primes[n * n :: n] = bytes(len(range(n * n, 300_000, n)))
    return sum(primes)


def dictionaries():
    counts = {}
    for n in range(200_000):
        counts[n * 7919 % 1009] = counts.get(n * 7919 % 1009, 0) + 1
    return sorted(counts.items())[-1]


def text():
    record = {"names": ["a%d" % n for n in range(2000)], "values": list(range(2000))}
    for _ in range(20):
        record = json.loads(json.dumps(record))
    words = " ".join(record["names"])
    return len(re.findall(r"a\d*7\b", words))


def files():
    with tempfile.TemporaryDirectory(dir=".") as directory:
        for n in range(200):
            with open(os.path.join(directory, str(n)), "w") as file:
                file.write("line\n" * 100)
        return sum(os.stat(os.path.join(directory, name)).st_size for name in os.listdir(directory))


for part in (numbers, dictionaries, text, files):
    print(part())
