// build: static
// What typing shows: plain echo, erasing, control characters, and the output modes.
#include "ptys.h"

CASE(defaults) {
    open_pair();
    struct termios t = get();
    CHECK_EQ(t.c_iflag, ICRNL | IXON);
    CHECK_EQ(t.c_oflag, OPOST | ONLCR);
    CHECK_EQ(t.c_cflag, B38400 | CS8 | CREAD);
    CHECK_EQ(t.c_lflag, ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN);
    static const unsigned char keys[NCCS] = {3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0};
    for (int i = 0; i < 17; i++) CHECK_EQ(t.c_cc[i], keys[i]);
    CHECK_EQ(t.c_line, 0);
}

CASE(plain_echo) {
    open_pair();
    type("abc");
    EXPECT(master, "abc");  // at once, long before the line ends
    type("\r");
    EXPECT(master, "\r\n");
    READ("abc\n");
    type("x\n");
    EXPECT(master, "x\r\n");
    local_flags(0, ECHO);
    type("hidden\n");
    quiet(master);
}

CASE(newline_only) {
    open_pair();
    local_flags(ECHONL, ECHO);
    type("secret\n");
    EXPECT(master, "\r\n");
    local_flags(0, ICANON);
    type("a\n");
    quiet(master);  // for lines only
}

CASE(erasing) {
    open_pair();
    type("ab\x7f");
    EXPECT(master, "ab\b \b");
    type("\x7f\x7f\x7f");
    EXPECT(master, "\b \b");
    local_flags(0, ECHOE);
    type("cd\x7f");
    EXPECT(master, "cd^?");  // the key itself
    local_flags(0, ECHOCTL);
    type("\x7f");
    EXPECT(master, "\x7f");
    type("\n");
    EXPECT(master, "\r\n");
    READ("\n");
}

CASE(word_erasing) {
    open_pair();
    type("one two\x17");
    EXPECT(master, "one two\b \b\b \b\b \b");
    type("\n");
    EXPECT(master, "\r\n");
    READ("one \n");
}

CASE(killing) {
    open_pair();
    type("abc\x15");
    EXPECT(master, "abc\b \b\b \b\b \b");  // ECHOKE
    local_flags(0, ECHOKE);
    type("abc\x15");
    EXPECT(master, "abc^U\r\n");  // ECHOK
    local_flags(0, ECHOK);
    type("abc\x15");
    EXPECT(master, "abc^U");
}

CASE(control_characters) {
    open_pair();
    type("\x01" "b\x1f");
    EXPECT(master, "^Ab^_");
    type("\t");
    EXPECT(master, "\t");  // tab is shown as it is
    type("\x7f");
    EXPECT(master, "\b\b\b");  // and taken back by its width: from 8 to 5
    type("\x7f");
    EXPECT(master, "\b \b\b \b");  // both cells of a control character
    type("\x15");
    EXPECT(master, "\b \b\b \b\b \b");
    local_flags(0, ECHOCTL);
    type("\x01" "b\x7f\x7f\x7f");
    EXPECT(master, "\x01" "b\b \b");  // one without a cell is erased without a trace
}

CASE(literal_and_reprint) {
    open_pair();
    type("\x16");
    EXPECT(master, "^\b");
    type("\x03");
    EXPECT(master, "^C");
    type("ab\x12");
    EXPECT(master, "ab^R\r\n^Cab");
    type("\x04");
    quiet(master);  // the end of file shows nothing
    READ("\x03" "ab");
}

CASE(end_of_file_is_not_shown) {
    open_pair();
    type("\x04");
    quiet(master);
    READ("");
    local_flags(0, ICANON);
    type("\x04");
    EXPECT(master, "^D");
}

CASE(nothing_of_signals_without_isig) {
    open_pair();
    local_flags(0, ISIG);
    type("\x03\x1c\x1a\n");
    EXPECT(master, "^C^\\^Z\r\n");
    READ("\x03\x1c\x1a\n");
}

CASE(echo_with_output_off) {
    open_pair();
    output_flags(0, OPOST);
    type("a\n");
    EXPECT(master, "a\n");
}

CASE(output_newlines) {
    open_pair();
    write_all(slave, "a\nb\r\n");
    EXPECT(master, "a\r\nb\r\r\n");
    output_flags(0, ONLCR);
    write_all(slave, "a\nb");
    EXPECT(master, "a\nb");
    output_flags(ONLCR, OPOST);
    write_all(slave, "a\nb\t");
    EXPECT(master, "a\nb\t");
}

CASE(output_returns) {
    open_pair();
    output_flags(OCRNL, ONLCR);
    write_all(slave, "a\rb");
    EXPECT(master, "a\nb");
    output_flags(ONOCR, OCRNL);
    write_all(slave, "\r\rc\rd");
    EXPECT(master, "\rc\rd");  // none at column zero; the column went on from b
    output_flags(OLCUC, ONOCR);
    write_all(slave, "abC1");
    EXPECT(master, "ABC1");
}

CASE(output_tabs) {
    open_pair();
    write_all(slave, "a\tb\n");
    EXPECT(master, "a\tb\r\n");
    output_flags(XTABS, 0);
    write_all(slave, "a\tb\t\tc\n\t.\n");
    EXPECT(master, "a       b               c\r\n        .\r\n");
    write_all(slave, "12345678\tx\b\b\ty\n");  // a backspace goes back
    EXPECT(master, "12345678        x\b\b y\r\n");
}

CASE(output_counts) {
    open_pair();
    CHECK_EQ(write(slave, "a\nb\n", 4), 4);  // what was asked for, not what came out
    EXPECT(master, "a\r\nb\r\n");
    CHECK_ERRNO(write(slave, nowhere, 3), EFAULT);
    CHECK_EQ(write(slave, "", 0), 0);
    quiet(master);
}

CASE(input_mappings) {
    open_pair();
    local_flags(0, ECHO);
    input_flags(INLCR, ICRNL);
    local_flags(0, ICANON);
    type("a\nb\r");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    EXPECT(slave, "a\rb\r");
    input_flags(IGNCR, INLCR);
    type("a\r\nb");
    EXPECT(slave, "a\nb");
    input_flags(ICRNL, 0);  // ignoring wins
    type("a\rb");
    EXPECT(slave, "ab");
    input_flags(PARMRK, IGNCR);
    type("a\xff" "b");
    EXPECT(slave, "a\xff\xff" "b");
}

MAIN
