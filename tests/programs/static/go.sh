#!/bin/bash
# needs: esbuild
# run: smoke
# A static Go program with many threads: bundles a tree of small modules.
mkdir src; for i in $(seq 1 60); do echo "import { f$((i + 1)) } from './m$((i + 1)).ts'; export const f$i = (x: number): number => f$((i + 1))(x) + $i;" > src/m$i.ts; done
echo "export const f61 = (x: number): number => x;" > src/m61.ts; echo "import { f1 } from './m1.ts'; console.log(f1(1));" > src/main.ts
./esbuild --version; ./esbuild src/main.ts --bundle --outfile=out.js --log-level=warning; echo $?; wc -l < out.js; sha256sum < out.js
./esbuild src/main.ts --bundle --minify --sourcemap --format=esm --outdir=o --log-level=warning; ls o; sha256sum < o/main.js
echo 'let x: number = 1' | ./esbuild --loader=ts; echo 'let = = 1' | ./esbuild --loader=ts 2>&1 | head -n 3; ./esbuild nosuch.ts --bundle 2>&1 | head -n 2
for i in 1 2 3 4 5; do ./esbuild src/m6.ts | sha256sum; done | uniq -c
