#!/bin/bash
# needs: make gcc
# run: timeout=240
# A generated C tree, built in parallel, twice (the second time nothing is to be done), then changed.
mkdir -p src include
for i in $(seq 1 24); do
    echo "int f$i(int x);" >> include/all.h
    printf '#include "all.h"\n#include <stdio.h>\nint f%d(int x) { char b[32]; return x * %d + snprintf(b, sizeof b, "%%d", x); }\n' $i $i > src/f$i.c
done
{ echo '#include "all.h"'; echo '#include <stdio.h>'; echo 'int main(void) { int s = 0;'
  for i in $(seq 1 24); do echo "s += f$i(s % 1000);"; done; echo 'printf("%d\n", s); return s % 100; }'; } > src/main.c
cat > Makefile <<'M'
OBJ := $(patsubst src/%.c,obj/%.o,$(wildcard src/*.c))
CFLAGS := -O1 -Iinclude
all: prog lib.a
prog: $(OBJ); gcc -o $@ $^
lib.a: $(filter-out obj/main.o,$(OBJ)); rm -f $@; ar rcsD $@ $(sort $^)
obj/%.o: src/%.c include/all.h | obj; @gcc $(CFLAGS) -c -o $@ $<
obj:; mkdir -p $@
fail:; exit 7
clean:; rm -rf obj prog lib.a
.PHONY: all clean fail
M
make -s -j4; echo "made $?"; ./prog; echo $?
make -j4 all; touch -d '+5 seconds' src/f3.c; make -n 2> /dev/null | grep -c 'gcc -O1'
nm lib.a | grep -c ' T '; sha256sum lib.a | cut -d' ' -f1
make fail 2>&1; echo $?
echo 'int broken(' >> src/f5.c; make -j4 2>&1 | grep -c error; make -s clean; ls
