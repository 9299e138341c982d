#!/bin/bash
# run: full timeout=1800
find /usr/lib -type f -perm -o+r 2> /dev/null | LC_ALL=C sort | tr '\n' '\0' | xargs -0 cat 2> /dev/null | sha256sum
find /usr -perm -o+r -not -type d -printf '%p %y %m %s %T@ %l %n\n' 2> /dev/null | LC_ALL=C sort | sha256sum
find /usr/share /usr/include -type d -perm -o+rx 2> /dev/null | LC_ALL=C sort | sha256sum
