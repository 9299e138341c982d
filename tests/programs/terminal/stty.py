#!/usr/bin/python3
# needs: /usr/bin/python3
# run: outside smoke
# Modes as stty shows and sets them; raw mode ends with the program, whatever way that ends.
from terminal import Terminal
for words in ("stty -a", "stty; stty -g | tr -d '\\n' | wc -c", "stty raw; stty -a", "stty -echo cbreak; stty", "stty intr ^X; stty -a | grep -o 'intr = ..'; stty sane; stty", "stty 9600; stty speed", "stty -F /dev/tty size; stty nosuch; echo $?", "s=$(stty -g); stty raw -echo; stty $s; stty", "tty | sed 's/[0-9]*$//'; test -t 0 && test -t 1 && test -t 2; echo $?; ps -o tty= -p $$ | sed 's/[0-9 ]*$//'", "[ $(ps -o tpgid= -p $$) = $(ps -o pgid= -p $$) ] && echo in front"):
    t = Terminal(["sh", "-c", words]); print(words, t.wait()); print(t.all.replace("\r", "<CR>"))
for end in ("exit 3", "kill -9 $$", "kill -TERM $$", "exec false"):
    t = Terminal(["sh", "-c", f"stty raw -echo; {end}"]); print(end, t.wait())
