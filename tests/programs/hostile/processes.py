#!/usr/bin/python3
# needs: /usr/bin/python3 gcc
# run: outside check smoke timeout=300
# Bombs of processes and threads stop at the kernel's own limit, and others go on.
from bombs import bombs

bombs(
    ("fork", 1, {"descriptors": 1000, "most": 64}),
    ("fork_tree", 2, {"descriptors": 1000, "full": 10, "most": 64}),
    ("threads", 1, {"descriptors": 1000, "most": 64}),
)
