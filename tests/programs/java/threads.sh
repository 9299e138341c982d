#!/bin/bash
# needs: javac java
# run: timeout=300
cat > Main.java <<'J'
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;
import java.nio.file.*;
public class Main {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Integer>> fs = new ArrayList<>();
        for (int i = 0; i < 20; i++) { final int n = i; fs.add(pool.submit(() -> fib(n))); }
        for (Future<Integer> f : fs) System.out.print(f.get() + " ");
        System.out.println();
        AtomicLong sum = new AtomicLong();
        Thread[] ts = new Thread[16];
        for (int i = 0; i < ts.length; i++) { ts[i] = new Thread(() -> { for (int j = 0; j < 10000; j++) sum.incrementAndGet(); }); ts[i].start(); }
        for (Thread t : ts) t.join();
        System.out.println(sum.get());
        System.out.println(IntStream.range(0, 1_000_000).parallel().filter(x -> x % 7 == 0).count());
        Object lock = new Object(); boolean[] ready = { false };
        Thread w = new Thread(() -> { synchronized (lock) { while (!ready[0]) try { lock.wait(); } catch (InterruptedException e) { } System.out.println("woken"); } });
        w.start(); Thread.sleep(50); synchronized (lock) { ready[0] = true; lock.notifyAll(); } w.join();
        List<byte[]> garbage = new ArrayList<>(); for (int i = 0; i < 2000; i++) { garbage.add(new byte[100_000]); if (garbage.size() > 50) garbage.clear(); } System.gc(); System.out.println("collected");
        try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("null pointer"); }
        try { deep(0); } catch (StackOverflowError e) { System.out.println("stack overflow"); }
        Files.writeString(Path.of("f"), "text"); System.out.println(Files.readString(Path.of("f")) + Files.size(Path.of("f")));
        Process p = new ProcessBuilder("echo", "child").start(); System.out.print(new String(p.getInputStream().readAllBytes())); System.out.println(p.waitFor());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        pool.shutdown(); System.exit(3);
    }
    static int deep(int n) { return deep(n + 1) + 1; }
}
J
javac Main.java && java Main; echo $?; java -Xint -XX:+UseSerialGC Main | tail -n 3; java -XX:+UseParallelGC -Xmx64m Main > /dev/null; echo $?; java NoSuch 2> /dev/null; echo $?; java -version 2>&1 | wc -l
