// build: static
// Odd but valid (and odd and invalid) ELF files, written here byte by byte.
#include "elf.h"

CASE(minimal) {
    SIMPLE(ET_EXEC, exit7);
    RUNS(7);
}

CASE(static_pie) {
    SIMPLE(ET_DYN, exit7);
    RUNS(7);
}

CASE(section_headers_do_not_matter) {
    SIMPLE(ET_EXEC, exit7);
    image.head->e_shoff = 0xfffffffffffffff0;
    image.head->e_shnum = 0xffff;
    image.head->e_shentsize = 3;
    image.head->e_shstrndx = 0xfffe;
    RUNS(7);
}

CASE(fields_that_linux_does_not_check) {
    SIMPLE(ET_EXEC, exit7);
    image.head->e_ident[EI_CLASS] = 77;
    image.head->e_ident[EI_DATA] = ELFDATA2MSB;
    image.head->e_ident[EI_VERSION] = 9;
    image.head->e_ident[EI_OSABI] = 200;
    image.head->e_version = 1234;
    image.head->e_ehsize = 1;
    image.head->e_flags = 0xffffffff;
    image.ph[0].p_paddr = 0x1234567;
    RUNS(7);
}

CASE(wrong_machine_or_type) {
    static const int machines[] = {EM_AARCH64, EM_ARM, EM_386, EM_RISCV, EM_NONE, 0xffff};
    for (int i = 0; i < 6; i++) {
        SIMPLE(ET_EXEC, exit7);
        image.head->e_machine = machines[i];
        REFUSED(ENOEXEC);
    }
    static const int types[] = {ET_NONE, ET_REL, ET_CORE, 77};
    for (int i = 0; i < 4; i++) {
        SIMPLE(ET_EXEC, exit7);
        image.head->e_type = types[i];
        REFUSED(ENOEXEC);
    }
}

CASE(broken_headers) {
    SIMPLE(ET_EXEC, exit7);
    image.head->e_phnum = 0;
    REFUSED(ENOEXEC);
    SIMPLE(ET_EXEC, exit7);
    image.head->e_phentsize = 32;
    REFUSED(ENOEXEC);
    SIMPLE(ET_EXEC, exit7);
    image.head->e_phnum = 2000;  // more than 64 KiB of them
    REFUSED(ENOEXEC);
    SIMPLE(ET_EXEC, exit7);
    image.head->e_phoff = 0x10000000;  // beyond the file
    REFUSED(ENOEXEC);
    SIMPLE(ET_EXEC, exit7);
    image.head->e_phoff = -8;
    REFUSED(ENOEXEC);
    SIMPLE(ET_EXEC, exit7);
    image.size = 40;  // cut in the header
    REFUSED(ENOEXEC);
    SIMPLE(ET_EXEC, exit7);
    image.size = 4;
    REFUSED(ENOEXEC);
    SIMPLE(ET_EXEC, exit7);
    image.bytes[1] = 'e';
    REFUSED(ENOEXEC);
}

CASE(program_headers_anywhere) {
    SIMPLE(ET_EXEC, exit7);
    size_t at = 0x800 + 3;  // not even aligned
    memcpy(image.bytes + at, image.ph, 56);
    memset(image.ph, 0xff, 56);
    ((Elf64_Phdr *)(image.bytes + at))->p_filesz = ((Elf64_Phdr *)(image.bytes + at))->p_memsz = at + 56;
    image.head->e_phoff = at;
    image.size = at + 56;
    RUNS(7);
}

CASE(alignments) {
    static const unsigned long aligns[] = {0, 1, 3, 8, 4096, 0x10000, 0x200000, 0x40000000, 1ul << 40, -1ul};
    for (int i = 0; i < 10; i++) {
        SIMPLE(ET_EXEC, exit7);
        image.ph[0].p_align = aligns[i];
        RUNS(7);
    }
    // For ET_DYN the greatest power of two counts, if there is room for it.
    for (int i = 0; i < 8; i++) {
        SIMPLE(ET_DYN, dump_stack);
        image.ph[0].p_align = aligns[i];
        char *none[] = {"x", NULL};
        run_dump(none, none + 1);
        unsigned long entry = dumped_aux(AT_ENTRY);
        CHECK_EQ((entry - CODE) % 4096, 0);
        if (aligns[i] >= 4096) CHECK_EQ((entry - CODE) % aligns[i], 0);
    }
}

CASE(zero_length_segments) {
    SIMPLE(ET_EXEC, exit7);
    segment(PT_LOAD, PF_R | PF_W, 0, BASE + 0x10000, 0, 0);
    RUNS(7);
    SIMPLE(ET_EXEC, exit7);
    segment(PT_LOAD, PF_R | PF_W, 0x123, BASE + 0x10123, 0, 0x2000);  // bss only
    RUNS(7);
}

CASE(unknown_segments_are_skipped) {
    image_start(ET_EXEC, exit7, exit7_end - exit7);
    segment(PT_NOTE, PF_R, 0x10000000, 0x5000, 99, 3);
    segment(0x6fffffff, 0, -1, -1, -1, -1);
    segment(PT_TLS, PF_R, 0, 0x77, 1, 1);
    segment(PT_LOAD, PF_R | PF_X, 0, BASE, image.size, image.size);
    segment(PT_GNU_RELRO, PF_R, 1, 2, 3, 4);
    segment(PT_SHLIB, 7, 1, 2, 3, 4);
    RUNS(7);
}

CASE(overlapping_segments) {
    // The later one wins, page by page.
    image_start(ET_EXEC, exit7, exit7_end - exit7);
    memcpy(image.bytes + 0x1000 + CODE, exit9, exit9_end - exit9);
    image.size = 0x2000;
    segment(PT_LOAD, PF_R | PF_X, 0, BASE, 0x2000, 0x2000);
    RUNS(7);
    segment(PT_LOAD, PF_R | PF_X, 0x1000, BASE, 0x1000, 0x1000);
    RUNS(9);
    // Part of a page: the whole page is the later segment's.
    image.ph[1] = image.ph[0];
    image.ph[1].p_offset = 0x1000 + 0x800;
    image.ph[1].p_vaddr = BASE + 0x800;
    image.ph[1].p_filesz = image.ph[1].p_memsz = 0x100;
    RUNS(9);
}

CASE(descending_segments) {
    image_start(ET_EXEC, exit7, exit7_end - exit7);
    image.size = 0x2000;
    segment(PT_LOAD, PF_R, 0x1000, BASE + 0x8000, 0x1000, 0x1000);
    segment(PT_LOAD, PF_R | PF_X, 0, BASE, 0x1000, 0x1000);
    RUNS(7);
}

// Look at a stretch of memory: exit 7 if it is all zero, 8 if not.
PROGRAM(look_zero, "mov $0x401800, %rsi\n\tmov $0x403000, %rdi\n1:\tcmpb $0, (%rsi)\n\tjne 2f\n\tinc %rsi\n\tcmp %rdi, %rsi\n\tjb 1b\n\t" EXIT(7) "2:\t" EXIT(8));

CASE(bss_over_page_ends) {
    // The file has rubbish beyond the segment's file size: the rest of the page must be cleared, the next pages are fresh.
    image_start(ET_EXEC, look_zero, look_zero_end - look_zero);
    memset(image.bytes + 0x1000, 0xee, 0x3000);
    image.size = 0x4000;
    segment(PT_LOAD, PF_R | PF_X, 0, BASE, 0x800, 0x800);
    segment(PT_LOAD, PF_R | PF_W, 0x1000, BASE + 0x1000, 0x800, 0x2000);
    RUNS(7);
    image.ph[1].p_filesz = 0x801;
    RUNS(8);
}

PROGRAM(write_bss, "movl $1, 0x401ffc\n\tmovl $1, 0x402ffc\n\t" EXIT(7));
CASE(bss_protections) {
    image_start(ET_EXEC, write_bss, write_bss_end - write_bss);
    image.size = 0x2000;
    segment(PT_LOAD, PF_R | PF_X, 0, BASE, 0x800, 0x800);
    segment(PT_LOAD, PF_R | PF_W, 0x1000, BASE + 0x1000, 0x10, 0x2000);
    RUNS(7);
    image.ph[1].p_flags = PF_R;
    DIES(SIGSEGV);
}

PROGRAM(write_text, "movl $1, 0x400100\n\t" EXIT(7));
CASE(segment_protections) {
    SIMPLE(ET_EXEC, write_text);
    DIES(SIGSEGV);
    image.ph[0].p_flags = PF_R | PF_W | PF_X;
    RUNS(7);
    SIMPLE(ET_EXEC, exit7);
    image.ph[0].p_flags = PF_R | PF_W;  // not executable
    DIES(SIGSEGV);
    image.ph[0].p_flags = PF_X;
    RUNS(7);
    image.ph[0].p_flags = 0;
    DIES(SIGSEGV);
}

CASE(the_stack_executes_only_if_asked) {
    SIMPLE(ET_EXEC, run_on_stack);
    DIES(SIGSEGV);  // no PT_GNU_STACK: not executable on x86-64 (since 5.8)
    segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0);
    DIES(SIGSEGV);
    image.ph[1].p_flags |= PF_X;
    RUNS(8);
}

CASE(invalid_segments_kill) {
    // Found after the old image has gone: no error can be returned any more.
    SIMPLE(ET_EXEC, exit7);
    image.ph[0].p_filesz = image.ph[0].p_memsz + 1;
    DIES(SIGSEGV);
    SIMPLE(ET_EXEC, exit7);
    segment(PT_LOAD, PF_R, 0, 0x7fffffffe000, 0x1000, 0x5000);
    DIES(SIGSEGV);
    SIMPLE(ET_EXEC, exit7);
    segment(PT_LOAD, PF_R, 0, 0xffffffff80000000, 0x1000, 0x1000);
    DIES(SIGSEGV);
    SIMPLE(ET_EXEC, exit7);
    image.ph[0].p_offset = 0x123;  // offset and address differ within the page
    DIES(SIGSEGV);
}

CASE(no_load_segment) {
    image_start(ET_EXEC, exit7, exit7_end - exit7);
    segment(PT_NOTE, PF_R, 0, BASE, image.size, image.size);
    DIES(SIGSEGV);
}

CASE(entry_points) {
    SIMPLE(ET_EXEC, exit7);
    image.head->e_entry = 0x99999000;
    DIES(SIGSEGV);
    SIMPLE(ET_EXEC, exit7);
    image.head->e_entry = 0;
    DIES(SIGSEGV);
    SIMPLE(ET_EXEC, exit7);
    memcpy(image.bytes + CODE + 0x100, exit9, exit9_end - exit9);
    image.size = CODE + 0x200;
    image.ph[0].p_filesz = image.ph[0].p_memsz = image.size;
    image.head->e_entry += 0x100;
    RUNS(9);
}

CASE(segment_beyond_the_file) {
    // Mapping is no error; touching is.
    SIMPLE(ET_EXEC, exit7);
    segment(PT_LOAD, PF_R, 0x100000, BASE + 0x100000, 0x1000, 0x1000);
    RUNS(7);
    image.head->e_entry = BASE + 0x100010;
    image.ph[1].p_flags = PF_R | PF_X;
    DIES(SIGBUS);
}

CASE(high_and_low_addresses) {
    static const unsigned long bases[] = {0x10000, 0x7f0000, 0x10000000, 0x100000000, 0x555555554000, 0x700000000000};
    for (int i = 0; i < 6; i++) {
        SIMPLE(ET_EXEC, exit7);
        image.ph[0].p_vaddr = bases[i];
        image.head->e_entry = bases[i] + CODE;
        RUNS(7);
    }
}

CASE(a_file_of_many_segments) {
    image_start(ET_EXEC, exit7, exit7_end - exit7);
    memmove(image.bytes + 0x2000, image.bytes + CODE, exit7_end - exit7);
    image.size = 0x3000;
    image.head->e_entry = BASE + 0x2000;
    for (int i = 0; i < 100; i++) segment(PT_LOAD, PF_R, 0, BASE + 0x100000 + i * 0x3000, 0x1000, 0x1000);
    segment(PT_LOAD, PF_R | PF_X, 0x2000, BASE + 0x2000, 0x1000, 0x1000);
    RUNS(7);
}

MAIN
