#!/bin/bash
# needs: gcc
# run: smoke timeout=120
cat > hello.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <math.h>
int main(int argc, char **argv) {
    printf("hello %d %s\n", argc, argv[argc - 1]);
    fprintf(stderr, "%s\n", strerror(ENOENT));
    printf("%.6f %s\n", sqrt(2.0) * sin(argc), getenv("LANG"));
    return 7;
}
C
gcc -o hello hello.c -lm && ./hello a b; echo $?
gcc -static -O2 -o static hello.c -lm && ./static x; echo $?
gcc -static-pie -o spie hello.c -lm && ./spie y; echo $?
gcc -no-pie -o nopie hello.c -lm && ./nopie z; echo $?
gcc -pipe -g -Wall -c hello.c && gcc -o piped hello.o -lm && ./piped > /dev/null; echo $?
gcc -S -o - hello.c | grep -c call; gcc -E hello.c | wc -l; gcc -M hello.c | head -c 9; echo
printf 'int twice(int x) { return 2 * x; }\n' > lib.c; gcc -shared -fPIC -o libtwice.so lib.c
printf '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%%d\\n", twice(21)); }\n' > use.c
gcc -o use use.c -L. -ltwice -Wl,-rpath,'$ORIGIN' && ./use; LD_LIBRARY_PATH=. ./use; rm libtwice.so; ./use 2>&1; echo $?
printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { void *h = dlopen("libm.so.6", RTLD_NOW); double (*f)(double) = dlsym(h, "cbrt"); printf("%%.3f\\n", f(27)); return dlclose(h); }\n' > dl.c; gcc -o dl dl.c && ./dl; echo $?
echo 'int main(void) { return nope; }' > bad.c; gcc bad.c 2>&1; echo $?
gcc -flto -O2 -o lto hello.c -lm && ./lto q; strip lto && ./lto r; echo 'int main(void){return 0;}' | gcc -xc -o stdin - && ./stdin; echo $?
objdump -d hello | grep -c '^[0-9a-f]* <main>'; readelf -h hello | grep Type; size hello | wc -l
