// build: static
// Canonical input: lines, editing keys, end of file, literal next, reprint, and the length limit.
#include "ptys.h"

static void silent(void) {
    open_pair();
    local_flags(0, ECHO);
}

CASE(lines) {
    silent();
    type("one\ntwo\nthr");
    READ("one\n");  // one line for each read
    READ("two\n");
    quiet(slave);
    type("ee\n");
    READ("three\n");
    type("\n\n");
    READ("\n");
    READ("\n");
}

CASE(short_reads_leave_the_rest) {
    silent();
    char buf[8] = {0};
    type("abcdef\nnext\n");
    CHECK(ready(slave, POLLIN, 2000));
    CHECK_EQ(read(slave, buf, 2), 2);
    CHECK_EQ(read(slave, buf + 2, 3), 3);
    CHECK_STR(buf, "abcde");
    READ("f\n");
    CHECK(ready(slave, POLLIN, 2000));
    CHECK_EQ(read(slave, buf, 5), 5);  // ends exactly at the line's end
    quiet(slave);
}

CASE(carriage_return_ends_a_line) {
    silent();
    type("typed\r");
    READ("typed\n");
    input_flags(0, ICRNL);
    type("a\rb\n");
    READ("a\rb\n");
}

CASE(erase) {
    silent();
    type("abX\x7f" "c\n");
    READ("abc\n");
    type("\x7f\x7f" "x\n");  // nothing to erase
    READ("x\n");
    type("ab\x7f\x7f\x7f\x7f" "cd\n");
    READ("cd\n");
    type("line\n\x7fmore\n");  // a finished line is out of reach
    READ("line\n");
    READ("more\n");
    struct termios t = get();
    t.c_cc[VERASE] = '#';
    set(t);
    type("ab#c\x7f\n");
    READ("ac\x7f\n");
}

CASE(kill_and_word_erase) {
    silent();
    type("everything\x15" "new\n");
    READ("new\n");
    type("one two  three\x17\n");
    READ("one two  \n");
    type("one two  \x17\n");
    READ("one \n");
    type("one-two\x17x\n");  // letters, digits and _ make words
    READ("one-x\n");
    type("one two\x17\x17\x17\x17z\n");
    READ("z\n");
    type("a.b \x17\x15q\n");
    READ("q\n");
    local_flags(0, IEXTEN);  // word erase, literal next and reprint are extensions
    type("ab\x17" "c\x16" "d\x12\n");
    READ("ab\x17" "c\x16" "d\x12\n");
}

CASE(end_of_file) {
    silent();
    type("\x04");
    READ("");  // on an empty line: a read of nothing
    type("abc\x04");
    READ("abc");  // else what there is, without an end
    type("x\n\x04");
    READ("x\n");
    READ("");
    type("ab\x04\x04");
    READ("ab");
    READ("");
    type("cd\x04" "ef\n");
    READ("cd");
    READ("ef\n");
    char buf[4];
    type("abc\x04");  // a read of just that much takes the mark along
    CHECK(ready(slave, POLLIN, 2000));
    CHECK_EQ(read(slave, buf, 3), 3);
    quiet(slave);
    type("\x04");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    READ("");
}

CASE(other_line_ends) {
    silent();
    struct termios t = get();
    t.c_cc[VEOL] = ';';
    t.c_cc[VEOL2] = '|';
    set(t);
    type("a;b|c\n");
    READ("a;");
    READ("b|");
    READ("c\n");
    local_flags(0, IEXTEN);  // the second one is an extension
    type("d|e;");
    READ("d|e;");
}

CASE(literal_next) {
    silent();
    type("a\x16\x7f" "b\x16\x04\x16\x15\x16\x16\n");
    READ("a\x7f" "b\x04\x15\x16\n");
    type("a\x16\nb\n");
    READ("a\nb\n");  // a quoted newline is a character like others
    type("a\x16\rb\n");  // and a quoted return is not mapped
    READ("a\rb\n");
    type("\x16\x03z\n");
    READ("\x03z\n");
    type("a\x16\x7f\x7f\n");  // quoted characters can be erased
    READ("a\n");
}

CASE(disabled_keys) {
    silent();
    struct termios t = get();
    t.c_cc[VERASE] = t.c_cc[VEOF] = t.c_cc[VKILL] = 0;  // _POSIX_VDISABLE
    set(t);
    type("a\x7f\x04\x15\n");
    READ("a\x7f\x04\x15\n");
    CHECK_EQ(write(master, "b\0c\n", 4), 4);  // a zero is no key at all
    char buf[8];
    CHECK(ready(slave, POLLIN, 2000));
    CHECK_EQ(read(slave, buf, 8), 4);
    CHECK_EQ(memcmp(buf, "b\0c\n", 4), 0);
}

CASE(case_and_bits) {
    silent();
    type("\x01\x1f\x80\xff\n");
    READ("\x01\x1f\x80\xff\n");
    input_flags(ISTRIP, 0);
    type("\xe1\xe2\n");
    READ("ab\n");
    input_flags(IUCLC, ISTRIP);
    type("ABCxyz\n");
    READ("abcxyz\n");
}

CASE(utf8_erase) {
    silent();
    input_flags(IUTF8, 0);
    type("a\xc3\xa9\x7f" "b\n");
    READ("ab\n");
    type("\xe2\x82\xac\x7f\x7fz\n");
    READ("z\n");
    input_flags(0, IUTF8);
    type("a\xc3\xa9\x7f\n");
    READ("a\xc3\n");
}

CASE(longest_line) {
    silent();
    static char line[6000], got[9000];
    memset(line, 'x', sizeof line);
    CHECK_EQ(write(master, line, 4000), 4000);
    usleep(20000);
    CHECK_EQ(write(master, line, 500), 500);  // what is too much is dropped, the newline is not
    usleep(20000);
    type("\n");
    CHECK(ready(slave, POLLIN, 2000));
    CHECK_EQ(read(slave, got, sizeof got), 4096);
    CHECK_EQ(got[4094], 'x');
    CHECK_EQ(got[4095], '\n');
    type("after\n");
    READ("after\n");
}

CASE(switching_modes) {
    silent();
    type("partial");
    usleep(20000);
    quiet(slave);
    local_flags(0, ICANON);  // without lines all that was typed is there
    READ("partial");
    type("more");
    CHECK(ready(slave, POLLIN, 2000));
    local_flags(ICANON, 0);  // and becomes a line when lines come back
    READ("more");
    type("x\n");
    READ("x\n");
}

CASE(waiting_counts) {
    silent();
    int n = -1;
    type("abc");
    usleep(20000);
    CHECK_OK(ioctl(slave, FIONREAD, &n));
    CHECK_EQ(n, 0);  // no line yet
    type("d\nsecond\n");
    CHECK(ready(slave, POLLIN, 2000));
    usleep(20000);
    CHECK_OK(ioctl(slave, FIONREAD, &n));
    CHECK_EQ(n, 12);
    READ("abcd\n");
    CHECK_OK(ioctl(slave, FIONREAD, &n));
    CHECK_EQ(n, 7);
    CHECK_OK(fcntl(slave, F_SETFL, O_NONBLOCK));
    READ("second\n");
    char c;
    CHECK_ERRNO(read(slave, &c, 1), EAGAIN);
    type("unfinished");
    usleep(20000);
    CHECK_ERRNO(read(slave, &c, 1), EAGAIN);
}

MAIN
