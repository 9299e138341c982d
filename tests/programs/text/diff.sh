#!/bin/bash
# needs: diff patch
seq 1 20 > a; sed 's/5/five/;12d;$a more' a > b
diff a b; diff -u a b | tail -n +3; diff -c a b | tail -n +3; diff -y -W 30 a b; diff -q a b; diff -e a b; diff a a; echo $?; cmp a b; cmp -l a b | wc -l; diff3 a b a | head -n 4; sdiff -s a b; mkdir d e; cp a d; cp b e/a; diff -r d e; diff -rq d e
diff -u a b > p; cp a c; patch c < p; cmp b c && echo patched; patch -R c < p; cmp a c && echo reversed; patch --dry-run c < p; echo junk | patch c 2>&1 | head -n 1; comm -3 a b
