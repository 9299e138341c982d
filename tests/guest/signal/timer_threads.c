// build: static -pthread
// Signals that come while threads begin and end, whoever takes them.
#include "../check.h"
#include <pthread.h>
#include <sys/time.h>

static volatile long taken;
static void take(int sig CHECK_USED) { taken++; }
static void *nothing(void *arg) { return arg; }

static void for_a_while(void (*round)(void)) {
    signal(SIGALRM, take);
    struct itimerval often = {{0, 300}, {0, 300}};
    CHECK_OK(setitimer(ITIMER_REAL, &often, NULL));
    struct timespec start, now;
    CHECK_OK(clock_gettime(CLOCK_MONOTONIC, &start));
    do {
        for (int i = 0; i < 50; i++) round();
        CHECK_OK(clock_gettime(CLOCK_MONOTONIC, &now));
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 1500);
    CHECK_GT(taken, 0);
}

static void one(void) {
    pthread_t thread;
    void *result;
    CHECK_EQ(pthread_create(&thread, NULL, nothing, (void *)&taken), 0);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(result == (void *)&taken);
}
CASE(a_thread_at_a_time) { for_a_while(one); }

static void four(void) {
    pthread_t threads[4];
    void *result;
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, nothing, (void *)&taken), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK(result == (void *)&taken);
    }
}
CASE(several_threads) { for_a_while(four); }

static void *makes(void *arg) {
    one();
    return arg;
}
static void by_another(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, makes, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
CASE(threads_that_make_threads) { for_a_while(by_another); }

static void child(void) {
    pid_t p = CHECK_OK(vfork());
    if (p == 0) _exit(3);
    CHECK_EXIT(p, 3);
}
CASE(children_that_share_memory) { for_a_while(child); }
MAIN
