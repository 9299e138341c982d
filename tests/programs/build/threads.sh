#!/bin/bash
# needs: gcc
# run: smoke timeout=120
cat > t.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t b;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t s;
static long sum, turn;
static atomic_long a;
static _Thread_local int mine;
static void *work(void *p) {
    long me = (long)p;
    for (int i = 0; i < 20000; i++) { pthread_mutex_lock(&m); sum++; pthread_mutex_unlock(&m); a++; mine++; }
    pthread_barrier_wait(&b);
    pthread_mutex_lock(&m);
    while (turn != me) pthread_cond_wait(&c, &m);
    printf("turn %ld mine %d\n", me, mine);
    turn++;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    pthread_rwlock_rdlock(&rw); pthread_rwlock_unlock(&rw);
    sem_post(&s);
    return (void *)(me * me);
}
static void *sleeper(void *p) { for (;;) pause(); return p; }
int main(void) {
    pthread_t t[8], x;
    sem_init(&s, 0, 0);
    pthread_barrier_init(&b, NULL, 8);
    for (long i = 0; i < 8; i++) pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < 8; i++) sem_wait(&s);
    for (int i = 0; i < 8; i++) { void *r; pthread_join(t[i], &r); printf("%ld ", (long)r); }
    printf("\n%ld %ld\n", sum, (long)a);
    pthread_create(&x, NULL, sleeper, NULL);
    void *r;
    pthread_cancel(x); pthread_join(x, &r);
    printf("%s\n", r == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    for (int i = 0; i < 500; i++) { pthread_create(&x, NULL, (void *(*)(void *))getpid, NULL); pthread_join(x, NULL); }
    return 0;
}
C
gcc -O2 -pthread -o t t.c && ./t; echo $?; gcc -O2 -static -pthread -o ts t.c && ./ts | tail -n 2; echo $?
