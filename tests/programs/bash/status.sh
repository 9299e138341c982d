#!/bin/bash
/nonexistent/program 2>&1 | sed 's/.*: line/line/'
./nonexistent 2> /dev/null; echo $?
echo 'no shebang' > plain; ./plain 2> /dev/null; echo $?
chmod +x plain; echo 'echo run by the shell' > plain; ./plain; echo $?
printf '#!/nonexistent/interpreter\n' > bad; chmod +x bad; ./bad 2> /dev/null; echo $?
printf '#!/bin/cat -A\nline\n' > catme; chmod +x catme; ./catme extra 2>&1 | head -n 2
printf '\x7fELF garbage' > elf; chmod +x elf; ./elf 2> /dev/null; echo $?
mkdir dir; ./dir 2> /dev/null; echo $?
/dev/null 2> /dev/null; echo $?
nosuchcommand 2> /dev/null; echo $?
exit 300
