// build: static -pthread
// membarrier(2): what must be registered, what is inherited.
#include "../check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { GLOBAL = 1, GLOBAL_EXPEDITED = 2, REGISTER_GLOBAL = 4, PRIVATE = 8, REGISTER_PRIVATE = 16, REGISTRATIONS = 0x200 };

static long barrier(int command, unsigned flags) { return syscall(SYS_membarrier, command, flags, 0); }
static void need(int commands) {
    long known = barrier(0, 0);
    if (known == -1 || (known & commands) != commands) SKIP("no such membarrier here");
}

CASE(arguments) {
    need(GLOBAL | PRIVATE);
    CHECK_ERRNO(barrier(0, 2), EINVAL);
    CHECK_ERRNO(barrier(PRIVATE, 1), EINVAL);
    CHECK_ERRNO(barrier(GLOBAL | GLOBAL_EXPEDITED, 0), EINVAL);
    CHECK_ERRNO(barrier(1 << 20, 0), EINVAL);
    CHECK_OK(barrier(GLOBAL, 0));
}

CASE(private_needs_registration) {
    need(PRIVATE | REGISTER_PRIVATE);
    CHECK_ERRNO(barrier(PRIVATE, 0), EPERM);
    CHECK_OK(barrier(REGISTER_PRIVATE, 0));
    CHECK_OK(barrier(PRIVATE, 0));
    CHECK_OK(barrier(REGISTER_PRIVATE, 0));
    CHECK_OK(barrier(PRIVATE, 0));
}

HELPER(unregistered) { CHECK_ERRNO(barrier(PRIVATE, 0), EPERM); }

CASE(registration_is_inherited_but_not_through_exec) {
    need(PRIVATE | REGISTER_PRIVATE);
    CHECK_OK(barrier(REGISTER_PRIVATE, 0));
    IN_CHILD({ CHECK_OK(barrier(PRIVATE, 0)); });
    pid_t p = CHECK_OK(vfork());
    if (p == 0) _exit(barrier(PRIVATE, 0) == 0 ? 0 : 1);
    CHECK_EXIT(p, 0);
    p = CHECK_OK(fork());
    if (p == 0) {
        execl(check_self, check_self, "@unregistered", NULL);
        FAIL("exec: %d", errno);
    }
    CHECK_EXIT(p, 0);
}

CASE(registrations_can_be_asked_for) {
    if (!(barrier(0, 0) & REGISTRATIONS)) SKIP("no MEMBARRIER_CMD_GET_REGISTRATIONS here");
    CHECK_EQ(barrier(REGISTRATIONS, 0), 0);
    CHECK_OK(barrier(REGISTER_PRIVATE, 0));
    CHECK_OK(barrier(REGISTER_GLOBAL, 0));
    CHECK_EQ(barrier(REGISTRATIONS, 0), REGISTER_PRIVATE | REGISTER_GLOBAL);
    CHECK_OK(barrier(GLOBAL_EXPEDITED, 0));
}

// Each side says that it is there, then looks for the other: with a barrier between the two on both sides one of them at
// least sees the other. The thread has none but that which the caller makes it pass.
enum { ROUNDS = 300 };
static atomic_int started, finished;
static volatile int mine, yours, thread_saw;
static void *other_side(void *unused) {
    for (int round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&started) < round) sched_yield();
        mine = 1;
        __asm__ volatile("" ::: "memory");
        thread_saw = yours;
        atomic_store(&finished, round);
    }
    return unused;
}

CASE(other_threads_pass_it) {
    need(PRIVATE | REGISTER_PRIVATE);
    CHECK_OK(barrier(REGISTER_PRIVATE, 0));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, other_side, NULL), 0);
    for (int round = 1; round <= ROUNDS; round++) {
        mine = yours = 0;
        atomic_store(&started, round);
        yours = 1;
        CHECK_OK(barrier(PRIVATE, 0));
        int saw = mine;
        while (atomic_load(&finished) < round) sched_yield();
        CHECK(saw || thread_saw);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

MAIN
