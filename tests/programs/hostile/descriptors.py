#!/usr/bin/python3
# needs: /usr/bin/python3 gcc
# run: outside check timeout=300
# Bombs of descriptors: at the process's limit, at the kernel's, and what they can hold.
from bombs import bombs

bombs(
    ("fds", 500, {"full": 5000, "descriptors": 20000}),
    ("fds_of_all", 8, {"full": 40}),
    ("in_flight_held", 1, {"uid": 1000}),
    # 16384 pages in pipes, and two for each pipe beyond.
    ("pipes", 1100, {"uid": 1000, "most": 160, "full": 1900, "descriptors": 20000}),
    # What a descriptor can hold: 208 KiB of a socket's buffer.
    ("sockets_full", 200, {"full": 1000, "most": 300}),
)
