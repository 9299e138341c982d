#!/bin/bash
# run: outside check smoke
# Nothing on the host changes, whatever the program does, and no secret shows.
bad=0; fail() { echo "FAILED: $*"; bad=1; }
echo keep > keep; mkdir sub; echo kept > sub/file; tag=umlaut-trace-$$; before=$(ls -lR --time-style=full-iso . ; stat -c '%n %y %a' /etc /usr /usr/bin /tmp/.. /var /home)
$RUN sh -c "
  echo changed > keep; rm -r sub; mkdir new; chmod 777 .; touch /etc/$tag /usr/$tag /usr/bin/$tag /tmp/$tag /var/tmp/$tag /home/$tag /$tag 2> /dev/null
  rm -f /etc/passwd /usr/bin/env; mv /usr/bin/sort /usr/bin/unsorted; chmod 000 /etc/hosts; ln -s x /etc/link-$tag; cat keep; ls" > out 2> err
[ "$(cat keep sub/file)" = "keep
kept" ] || fail "files of the directory changed"
for d in / /etc /usr /usr/bin /tmp /var/tmp /home; do [ ! -e $d/$tag ] || fail "$d/$tag appeared"; [ ! -e $d/link-$tag ] || fail "link in $d"; done
[ -s /etc/passwd ] && [ -x /usr/bin/env ] && [ -x /usr/bin/sort ] || fail "system files changed"
rm -f out err; [ "$before" = "$(ls -lR --time-style=full-iso . ; stat -c '%n %y %a' /etc /usr /usr/bin /tmp/.. /var /home)" ] || fail "metadata changed"
[ "$($RUN sh -c 'echo new > keep; cat keep; rm keep; ls')" = "new
default_root.sh
sub" ] || fail "the directory is not as inside"
[ "$($RUN cat keep)" = keep ] || fail "a second run sees the first one's changes"
for secret in /etc/shadow /etc/gshadow /etc/sudoers /root/.bashrc /root/.ssh /root/.cargo "$HOME/.ssh" /etc/ssh/ssh_host_rsa_key /etc/ssl/private /var/log /var/lib/apt /proc/1/environ; do
    x=$($RUN sh -c "cat $secret 2> /dev/null || ls -A $secret 2> /dev/null")
    case $secret in /proc/1/environ) echo "$x" | tr '\0' '\n' | grep -qE '^(UMLAUT|PYTHONPATH|RUN)=' && fail "environment of the host shows" ;;
    *) [ -z "$x" ] || fail "$secret shows: $(echo "$x" | head -n 3)" ;; esac
done
for d in /tmp /var/tmp /home /root /srv /mnt /media /run; do n=$($RUN sh -c "ls -A $d" 2> /dev/null | grep -v "^umlaut-test" | wc -l); [ "$n" -le 1 ] || fail "$d is not empty: $($RUN ls -A $d)"; done
[ "$($RUN cat /etc/machine-id 2> /dev/null)" != "$(cat /etc/machine-id 2> /dev/null || echo none)" ] || fail "the host's machine-id shows"
$RUN sh -c 'echo /proc/[0-9]* | wc -w' | grep -qxE '[1-5]' || fail "processes of the host show"
$RUN sh -c 'ls /sys/class/net /dev/sd* /dev/mem /dev/kmsg' 2> /dev/null | grep -q . && fail "devices show"
[ "$(MYSECRET=x $RUN env | grep -c MYSECRET)" = 0 ] || fail "the environment is passed on"
exit $bad
