#!/usr/bin/python3
# needs: /usr/bin/python3 gcc
# run: outside check timeout=300
# Bombs of the kinds that bounds on tables, walks and names stop.
from bombs import bombs

bombs(
    ("robust_list", 1000000, {}),
    ("epoll", 1, {}),
    ("exec_arguments", 1, {}),
    ("vectors", 1, {}),
    ("in_flight", 30, {"full": 2000}),
    ("signals", 2000, {"full": 100000, "most": 96}),
    ("timers", 100, {"full": 1000}),
    ("names", 20000, {"full": 1000000}),
    ("locks", 2000, {"full": 20000, "most": 96}),
    ("depth", 4000, {"full": 100000, "most": 256}),
    ("depth_dropped", 20000, {"full": 100000, "most": 256}),
    ("mappings", 1, {"most": 64}),
)
