// build: dynamic -pthread
// libpthread's objects under load, between threads and between processes: nothing lost, nobody left asleep.
#include "futex.h"
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long count;

static void *increments(void *arg) {
    for (long i = 0; i < (long)arg; i++) {
        pthread_mutex_lock(&mutex);
        count++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}
static void run(int n, void *(*body)(void *), void *arg) {
    pthread_t t[32];
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_create(&t[i], NULL, body, arg ? arg : (void *)(long)i), 0);
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}

CASE(mutex_counter) {
    run(8, increments, (void *)5000l);
    CHECK_EQ(count, 40000);
}

static int queue[16], head, tail;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static long produced, consumed;
static void *produces(void *arg) {
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&mutex);
        while (tail - head == 16) pthread_cond_wait(&not_full, &mutex);
        queue[tail++ % 16] = i;
        produced += i;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
static void *consumes(void *arg) {
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&mutex);
        while (tail == head) pthread_cond_wait(&cond, &mutex);
        consumed += queue[head++ % 16];
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
static void *either(void *arg) { return (long)arg & 1 ? consumes(arg) : produces(arg); }

CASE(producers_and_consumers) {
    run(8, either, NULL);
    CHECK_EQ(produced, consumed);
    CHECK_EQ(produced, 4 * 500 * 499 / 2);
}

static int turn;
static void *takes_turns(void *arg) {
    for (int round = 0; round < 100; round++) {
        pthread_mutex_lock(&mutex);
        while (turn % 5 != (long)arg) pthread_cond_wait(&cond, &mutex);
        turn++;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

CASE(broadcast_round_robin) {
    run(5, takes_turns, NULL);
    CHECK_EQ(turn, 500);
}

static pthread_barrier_t barrier;
static int phase[16];
static void *meets(void *arg) {
    for (int i = 0; i < 100; i++) {
        phase[(long)arg] = i;
        pthread_barrier_wait(&barrier);
        for (int k = 0; k < 6; k++) CHECK_EQ(phase[k], i);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

CASE(barriers) {
    pthread_barrier_init(&barrier, NULL, 6);
    run(6, meets, NULL);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long left, right;
static void *reads_or_writes(void *arg) {
    for (int i = 0; i < 1000; i++) {
        if ((long)arg == 0 || i % 50 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            left++;
            right++;
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_rdlock(&rwlock);
            CHECK_EQ(left, right);
            pthread_rwlock_unlock(&rwlock);
        }
    }
    return NULL;
}

CASE(readers_and_writers) {
    run(6, reads_or_writes, NULL);
    CHECK_EQ(left, 1000 + 5 * 20);
}

static sem_t sems[2];
static void *pings(void *arg) {
    for (int i = 0; i < 2000; i++) {
        sem_wait(&sems[(long)arg]);
        sem_post(&sems[1 - (long)arg]);
    }
    return NULL;
}

CASE(semaphore_ping_pong) {
    sem_init(&sems[0], 0, 1);
    sem_init(&sems[1], 0, 0);
    run(2, pings, NULL);
    int v;
    sem_getvalue(&sems[0], &v);
    CHECK_EQ(v, 1);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int times;
static void initialise(void) {
    sleep_ms(20);
    times++;
}
static void *calls_once(void *arg) {
    pthread_once(&once, initialise);
    CHECK_EQ(times, 1);
    return arg;
}

CASE(once_only) { run(16, calls_once, NULL); }

CASE(timed_waits) {
    struct timespec t = in_ms(CLOCK_REALTIME, 40);
    long start = now_ms();
    pthread_mutex_lock(&mutex);
    CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &t), ETIMEDOUT);
    CHECK_GE(now_ms() - start, 38);
    t = in_ms(CLOCK_MONOTONIC, 40);
    CHECK_EQ(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &t), ETIMEDOUT);
    CHECK_GE(now_ms() - start, 77);
    t = in_ms(CLOCK_REALTIME, 30);
    CHECK_EQ(pthread_mutex_timedlock(&mutex, &t), ETIMEDOUT);
    sem_t s;
    sem_init(&s, 0, 0);
    t = in_ms(CLOCK_REALTIME, 30);
    CHECK_ERRNO(sem_timedwait(&s, &t), ETIMEDOUT);
}

struct shared { pthread_mutex_t mutex; pthread_cond_t cond; sem_t sem; long count; int turn; };

CASE(between_processes) {
    struct shared *s = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pthread_mutexattr_t ma;
    pthread_condattr_t ca;
    pthread_mutexattr_init(&ma);
    pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&ca);
    pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&s->mutex, &ma);
    pthread_cond_init(&s->cond, &ca);
    sem_init(&s->sem, 1, 0);
    pid_t p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = CHECK_OK(fork());
        if (p[i] == 0) {
            for (int k = 0; k < 1000; k++) {
                pthread_mutex_lock(&s->mutex);
                s->count++;
                pthread_mutex_unlock(&s->mutex);
            }
            for (int k = 0; k < 50; k++) {
                pthread_mutex_lock(&s->mutex);
                while (s->turn % 4 != i) pthread_cond_wait(&s->cond, &s->mutex);
                s->turn++;
                pthread_cond_broadcast(&s->cond);
                pthread_mutex_unlock(&s->mutex);
            }
            sem_post(&s->sem);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++) CHECK_OK(sem_wait(&s->sem));
    for (int i = 0; i < 4; i++) CHECK_EXIT(p[i], 0);
    CHECK_EQ(s->count, 4000);
    CHECK_EQ(s->turn, 200);
}

static volatile unsigned ball;
static void *plays(void *arg) {
    unsigned me = (long)arg;
    for (int i = 0; i < 2000; i++) {
        while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) != me) futex(&ball, FUTEX_WAIT_PRIVATE, 1 - me, NULL, NULL, 0);
        __atomic_store_n(&ball, 1 - me, __ATOMIC_RELEASE);
        futex(&ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return NULL;
}

CASE(raw_ping_pong) {
    run(2, plays, NULL);
    CHECK_EQ(ball, 0);
}

MAIN
