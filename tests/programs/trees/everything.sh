#!/bin/bash
# run: full timeout=1800
# Contents and metadata of all that everybody may read: what is in a directory that is closed to others does not show inside.
closed='-type d -not -perm -o+rx -prune -o'
find /usr/lib $closed -type f -perm -o+r -print 2> /dev/null | LC_ALL=C sort | tr '\n' '\0' | xargs -0 cat 2> /dev/null | sha256sum
find /usr $closed -perm -o+r -not -type d -printf '%p %y %m %s %T@ %l %n\n' 2> /dev/null | LC_ALL=C sort | sha256sum
find /usr/share /usr/include $closed -type d -perm -o+rx -print 2> /dev/null | LC_ALL=C sort | sha256sum
