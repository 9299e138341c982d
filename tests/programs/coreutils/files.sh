#!/bin/bash
# run: smoke
mkdir -p a/b/c -m 755; mkdir -v d; rmdir -v d; mkdir a 2>&1; rmdir a 2>&1
echo content > f; cp -v f g; cp -a a a2; cp -r a/. a3; cp --sparse=always f sp; cp -l f hard; cp -s "$PWD/f" soft; cp -u f g; cp --reflink=auto f h; cp nosuch x 2>&1
mv -v g g2; mv g2 a/b; ls -R a; mv -n f h; mv -T a2 a4; mv nosuch y 2>&1; mv --exchange 2> /dev/null; echo $?
ln f link; ln -s f sym; ln -sf a symdir; ln -r -s a/b/g2 rel; readlink sym rel; readlink -f rel | sed 's|.*/here/||'; realpath --relative-to=a f; ln f f 2>&1
stat -c '%n %F %s %a %h' f link sym; stat -c '%n %F %a' a; stat -L -c '%F' sym; [ f -ef link ] && echo same file
ls -1; ls -A; ls -ld a | cut -c1-10; ls -l f | cut -c1-10; ls -F; ls -S f a/b/g2; ls nosuch 2>&1; ls -i f link | awk '{ print $1 }' | uniq | wc -l; ls -m; dir; vdir f | cut -c1-10
chmod 640 f; stat -c %a f; chmod u+x,g-r,o=r f; stat -c %A f; chmod -R a+rX a; chmod +t a; stat -c %a a; chmod 4755 f; stat -c %a f; chmod --reference=h f; stat -c %a f; chmod g+s a; stat -c %a a
touch -d '2020-02-03 04:05:06.123456789 UTC' f; stat -c '%y %Y' f; touch -r f h; stat -c %Y h; touch -a -d @100 f; stat -c '%X %Y' f; touch -c none; ls none 2>&1; touch -h -d @5 sym; stat -c %Y sym
truncate -s 1M big; stat -c '%s %b' big; truncate -s -1K big; stat -c %s big; truncate -s %4096 f; stat -c %s f; du -k big; du --apparent-size -b big
dd if=/dev/zero of=z bs=1k count=10 seek=5 conv=notrunc 2>&1 | head -n 2; stat -c %s z; dd if=z bs=512 skip=3 count=2 status=none | wc -c; echo abc | dd conv=ucase status=none; dd if=f of=q oflag=append conv=notrunc,fsync status=none; stat -c %s q
install -m 711 h inst; stat -c %a inst; install -d i/j/k; ls -d i/j/k; mktemp -u tXXXX | wc -c; t=$(mktemp -p .); stat -c '%a %s' "$t"; rm "$t"; mkfifo -m 600 p; stat -c '%F %a' p; mknod p2 p; stat -c %F p2
unlink link; stat -c %h f; rm -v hard; rm -rf a3; rm -i h < /dev/null; rm nosuch 2>&1; rm -d i/j/k; rm a 2>&1; shred -u inst; ls inst 2>&1; rm -rfv i | sort; sync f; pathchk -p abc; echo $?
basename /usr/lib/x.so .so; dirname /usr/lib/x.so; pwd | sed 's|.*/||'; df --output=target / ; df . > /dev/null; echo $?; test -r f; echo $?; [ -s f ] && [ ! -s nosuch ]; echo $?; [ z -nt f ]; echo $?
chown nosuchuser f 2>&1; chgrp "$(id -g)" f; chown "$(id -u):$(id -g)" f; echo $?; ls --color=always -d a | od -c | head -n 2; link f newlink; stat -c %h f; cp --preserve=all f pres; [ "$(stat -c %y f)" = "$(stat -c %y pres)" ] && echo preserved
