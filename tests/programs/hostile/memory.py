#!/usr/bin/python3
# needs: /usr/bin/python3 gcc
# run: outside check timeout=300
# --memory holds, whatever kind of memory it is; who takes too much is killed, others live.
from bombs import bombs

limit = {"options": "--memory 64M"}
bombs(
    ("memory", 1, limit),
    ("shared_memory", 1, limit),
    ("shared_memory_let_go", 1, limit),
    ("page_tables", 40000, limit),
    ("memfd", 1, limit),
    ("full_pipes", 1, {"options": "--memory 64M", "most": 128}),
    ("overcommit", 65, limit),
    ("tmpfs_space", 1, limit),
    ("inodes", 1, {"options": "--memory 64M", "most": 64}),
    ("sparse", 10, {"options": "--memory 64M", "full": 1000}),
)
