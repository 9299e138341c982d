// build: static -pthread
// PI operations. umlaut refuses them (host PI futexes tell host thread ids): its runs expect the pi_ cases to fail and
// the refused case to pass; natively it is the other way round, so that one looks at what it is given.
#include "futex.h"

static volatile unsigned word;
static int tid(void) { return syscall(SYS_gettid); }

CASE(refused_or_working) {
    // ENOSYS from all of them, or work by all of them.
    long r = futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
    if (r == -1) {
        CHECK_EQ(errno, ENOSYS);
        CHECK_ERRNO(futex(&word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0), ENOSYS);
        CHECK_ERRNO(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), ENOSYS);
        CHECK_ERRNO(futex(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), ENOSYS);
        CHECK_ERRNO(futex(&word, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &word, 0), ENOSYS);
        CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE_PI, 1, NULL, &word, 0), ENOSYS);
        CHECK_EQ(word, 0);
        // libc reports it as a kernel without them.
        pthread_mutexattr_t attr;
        pthread_mutex_t m;
        pthread_mutexattr_init(&attr);
        CHECK_EQ(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), 0);
        CHECK_EQ(pthread_mutex_init(&m, &attr), ENOTSUP);
    } else {
        CHECK_EQ(word, tid());
        CHECK_OK(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    }
}

CASE(pi_lock_and_unlock) {
    CHECK_OK(futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    CHECK_EQ(word, tid());
    CHECK_ERRNO(futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0), EDEADLK);
    CHECK_OK(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    CHECK_EQ(word, 0);
    CHECK_ERRNO(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), EPERM);
    CHECK_OK(futex(&word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
    CHECK_OK(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    word = 0x3fffffff;
    CHECK_ERRNO(futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0), ESRCH);
}

static long total;
static pthread_mutex_t mutex;
static void *add(void *arg) {
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        total++;
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

CASE(pi_mutex_of_libc) {
    pthread_mutexattr_t attr;
    pthread_t t[4];
    pthread_mutexattr_init(&attr);
    CHECK_EQ(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &attr), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, add, NULL), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(total, 4000);
}

MAIN
