#!/bin/bash
# needs: vi
seq 1 20 > f; vi -u NONE -es -N f -c '%s/1/one/g' -c '5d' -c '$put =\"last\"' -c 'wq' < /dev/null; echo $?; cat f
printf ':2,3d\n:1\nihello\x1b:wq! out\n' > keys; vi -u NONE -es f < keys; echo $?; ls; vi -u NONE -es f -c 'g/one/d' -c 'w g' -c 'q!' < /dev/null; cat g; wc -l f g; vi --version | head -n 1 | cut -c1-3; ex -u NONE -s f <<X
1,5p
%!sort -r
1,2p
q!
X
vi -u NONE -es nosuchdir/f -c 'w' -c 'q!' < /dev/null; echo $?
