// Memory that may go when it is short (MAP_DROPPABLE, Linux 6.11), where the vDSO's getrandom keeps its state.
#include "../check.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 8
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#define MADV_KEEPONFORK 19
#endif
enum { PAGE = 4096 };

static char *droppable(size_t len, int flags) {
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS | flags, -1, 0);
    if (at == MAP_FAILED && !flags && errno != EPERM) SKIP("Linux before 6.11");
    return at;
}

CASE(it_is_memory) {
    char *at = CHECK_MAP(droppable(4 * PAGE, 0));
    for (int i = 0; i < 4 * PAGE; i++) CHECK_EQ(at[i], 0);
    memset(at, 7, PAGE);
    CHECK_OK(mprotect(at, PAGE, PROT_READ));
    CHECK_OK(mprotect(at, PAGE, PROT_READ | PROT_WRITE));
    at = CHECK_MAP(mremap(at, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE));
    at[7 * PAGE] = 1;
    CHECK_OK(munmap(at, 8 * PAGE));
}

CASE(not_with_files_locks_or_growth) {
    CHECK_MAP(droppable(PAGE, 0));
    int fd = CHECK_OK(open(check_self, O_RDONLY | O_CLOEXEC));
    CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_DROPPABLE, fd, 0), EINVAL);
    CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS | MAP_SHARED, -1, 0), EINVAL);
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_MEMLOCK, &limit));
    if (limit.rlim_cur >= PAGE)
        CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0), EINVAL);
}

CASE(a_child_finds_zeros) {
    char *at = CHECK_MAP(droppable(PAGE, 0));
    at[0] = 5;
    IN_CHILD({ CHECK_EQ(at[0], 0); at[0] = 6; IN_CHILD({ CHECK_EQ(at[0], 0); }); });
    CHECK_ERRNO(madvise(at, PAGE, MADV_KEEPONFORK), EINVAL);
    CHECK_ERRNO(madvise(at, PAGE, MADV_DODUMP), EINVAL);
    CHECK_OK(madvise(at, PAGE, MADV_WIPEONFORK));
    CHECK_OK(madvise(at, PAGE, MADV_DONTDUMP));
}

CASE(locking_it_changes_nothing) {
    char *at = CHECK_MAP(droppable(PAGE, 0));
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_MEMLOCK, &limit));
    if (limit.rlim_cur < PAGE) SKIP("no memory may be locked");
    at[0] = 1;
    CHECK_OK(mlock(at, PAGE));
    CHECK_OK(madvise(at, PAGE, MADV_DONTNEED));
    CHECK_OK(munlock(at, PAGE));
}

typedef long vdso_getrandom(void *buffer, size_t len, unsigned flags, void *state, size_t size);

static vdso_getrandom *find_getrandom(void) {
    char *image = (char *)getauxval(AT_SYSINFO_EHDR), *base = NULL;
    if (!image) return NULL;
    Elf64_Ehdr *head = (Elf64_Ehdr *)image;
    Elf64_Phdr *ph = (Elf64_Phdr *)(image + head->e_phoff);
    Elf64_Dyn *dynamic = NULL;
    for (int i = 0; i < head->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD && !base) base = image - ph[i].p_vaddr + ph[i].p_offset;
        if (ph[i].p_type == PT_DYNAMIC) dynamic = (Elf64_Dyn *)(image + ph[i].p_offset);
    }
    Elf64_Sym *symbols = NULL;
    char *strings = NULL;
    for (; dynamic && dynamic->d_tag; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB) symbols = (Elf64_Sym *)(base + dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_STRTAB) strings = base + dynamic->d_un.d_ptr;
    }
    // The strings lie behind the symbols.
    for (Elf64_Sym *one = symbols; one && (char *)one < strings; one++)
        if (!strcmp(strings + one->st_name, "__vdso_getrandom")) return (vdso_getrandom *)(base + one->st_value);
    return NULL;
}

CASE(the_vdso_keeps_its_state_there) {
    vdso_getrandom *getrandom = find_getrandom();
    if (!getrandom) SKIP("the vDSO has no getrandom");
    struct {
        unsigned size, prot, flags, reserved[13];
    } wants;
    CHECK_EQ(getrandom(NULL, 0, 0, &wants, -1), 0);
    char *state = CHECK_MAP(mmap(NULL, PAGE, wants.prot, wants.flags, -1, 0));
    char one[16] = {0}, other[16] = {0};
    CHECK_EQ(getrandom(one, sizeof one, 0, state, wants.size), sizeof one);
    CHECK_EQ(getrandom(other, sizeof other, 0, state, wants.size), sizeof other);
    CHECK(memcmp(one, other, sizeof one));
}
MAIN
