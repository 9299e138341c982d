"""A program on a pseudo terminal, natively or inside umlaut (by the words in $RUN).

Terminal starts the program; expect() waits for output; screen() is what a person would see. A test prints what it
saw, and the runner compares that with the native run. Waiting is by content, never by time alone.
"""
import fcntl, os, pty, re, select, shlex, signal, struct, sys, termios, time

sys.stdout.reconfigure(line_buffering=True)
PATIENCE = 30 * int(os.environ.get("PATIENCE", 1))  # seconds until an expectation counts as not met


class Screen:
    """The part of a VT100/xterm that less, vi, top and readline use."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.reset()

    def reset(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.top, self.bottom = 0, self.rows - 1
        self.saved = (0, 0)
        self.wrap = False
        self.main = None
        self.pending = ""

    def lines(self):
        return ["".join(line).rstrip() for line in self.cells]

    def blank(self):
        return [" "] * self.columns

    def scroll(self, n):
        for _ in range(abs(n)):
            if n > 0:
                del self.cells[self.top]
                self.cells.insert(self.bottom, self.blank())
            else:
                del self.cells[self.bottom]
                self.cells.insert(self.top, self.blank())

    def down(self):
        if self.row == self.bottom:
            self.scroll(1)
        elif self.row < self.rows - 1:
            self.row += 1

    def feed(self, text):
        text, self.pending = self.pending + text, ""
        at = 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                m = re.compile(r"\x1b(?:\[([<=>?!]?)([\d;:]*)([ -/]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[()*+#%].|[^\[\]P()*+#%])", re.S).match(text, at)
                if not m:
                    self.pending = text[at:]
                    return
                at = m.end()
                self.escape(m)
                continue
            at += 1
            if c == "\r":
                self.column, self.wrap = 0, False
            elif c in "\n\v\f":
                self.wrap = False
                self.down()
            elif c == "\b":
                self.column, self.wrap = max(0, self.column - 1), False
            elif c == "\t":
                self.column = min(self.columns - 1, (self.column // 8 + 1) * 8)
            elif c >= " " and c != "\x7f":
                if self.wrap:
                    self.column, self.wrap = 0, False
                    self.down()
                self.cells[self.row][self.column] = c
                if self.column == self.columns - 1:
                    self.wrap = True
                else:
                    self.column += 1

    def escape(self, m):
        mark, numbers, _, final = m.group(1), m.group(2), m.group(3), m.group(4)
        self.wrap = False
        if final is None:
            c = m.group(0)[1]
            if c == "M":
                if self.row == self.top:
                    self.scroll(-1)
                else:
                    self.row -= 1
            elif c in "DE":
                self.column = 0 if c == "E" else self.column
                self.down()
            elif c == "7":
                self.saved = (self.row, self.column)
            elif c == "8":
                self.row, self.column = self.saved
            elif c == "c":
                self.reset()
            return
        n = [int(x) if x.isdigit() else 0 for x in numbers.split(";")]
        one = max(1, n[0])
        line = self.cells[self.row]
        if mark == "?":
            if final in "hl" and n[0] in (47, 1047, 1049):
                if final == "h":
                    self.main = (self.cells, self.row, self.column)
                    self.cells = [self.blank() for _ in range(self.rows)]
                elif self.main:
                    (self.cells, self.row, self.column), self.main = self.main, None
        elif mark or m.group(3):
            return
        elif final == "A":
            self.row = max(0, self.row - one)
        elif final == "B":
            self.row = min(self.rows - 1, self.row + one)
        elif final == "C":
            self.column = min(self.columns - 1, self.column + one)
        elif final == "D":
            self.column = max(0, self.column - one)
        elif final == "G":
            self.column = min(self.columns, one) - 1
        elif final == "d":
            self.row = min(self.rows, one) - 1
        elif final in "Hf":
            self.row = min(self.rows, one) - 1
            self.column = min(self.columns, max(1, n[1] if len(n) > 1 else 1)) - 1
        elif final == "J":
            if n[0] == 0:
                line[self.column:] = [" "] * (self.columns - self.column)
                for r in range(self.row + 1, self.rows):
                    self.cells[r] = self.blank()
            elif n[0] == 1:
                for r in range(self.row):
                    self.cells[r] = self.blank()
            else:
                self.cells = [self.blank() for _ in range(self.rows)]
        elif final == "K":
            first, last = [(self.column, self.columns), (0, self.column + 1), (0, self.columns)][n[0]]
            line[first:last] = [" "] * (last - first)
        elif final in "LM":
            if self.top <= self.row <= self.bottom:
                top, self.top = self.top, self.row
                self.scroll(-one if final == "L" else one)
                self.top = top
        elif final == "P":
            del line[self.column:self.column + one]
            line.extend([" "] * (self.columns - len(line)))
        elif final == "@":
            line[self.column:self.column] = [" "] * one
            del line[self.columns:]
        elif final == "X":
            line[self.column:self.column + one] = [" "] * min(one, self.columns - self.column)
        elif final in "ST":
            self.scroll(one if final == "S" else -one)
        elif final == "r":
            self.top = one - 1
            self.bottom = (n[1] if len(n) > 1 and n[1] else self.rows) - 1
            self.row = self.column = 0


class Terminal:
    """A program with a controlling terminal of its own."""

    def __init__(self, argv, rows=24, columns=80, run=None):
        words = shlex.split(os.environ.get("RUN", "")) if run is None else run
        self.size = struct.pack("HHHH", rows, columns, 0, 0)
        self.view = Screen(rows, columns)
        self.all, self.seen, self.status = "", 0, None
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, self.size)
        self.before = termios.tcgetattr(self.master)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.closerange(3, 256)
            for s in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP,
                      signal.SIGTTIN, signal.SIGTTOU):
                signal.signal(s, signal.SIG_DFL)  # whoever runs the tests may ignore some
            os.execvp((words + argv)[0], words + argv)
        os.close(slave)

    def send(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        """Takes what comes within the time; False when the other side is closed."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        text = data.decode("utf-8", "replace")
        self.all += text
        self.view.feed(text)
        return bool(data)

    def expect(self, pattern, on_screen=False):
        """Waits until the output since the last expectation (or the screen) matches."""
        end = time.monotonic() + PATIENCE
        while True:
            if on_screen:
                found = re.search(pattern, "\n".join(self.view.lines()), re.M)
            else:
                found = re.search(pattern, self.all[self.seen:])
            if found:
                if not on_screen:
                    self.seen += found.end()
                return found
            if time.monotonic() > end or not self.read(0.2):
                self.give_up(f"expected {pattern!r}")

    def ready(self):
        """Waits for the line `ready`, and for the program to get to what it does next."""
        self.expect(r"ready\r\n")
        self.quiet()

    def quiet(self, seconds=0.5):
        """Reads until nothing has come for a while, at most ten times as long."""
        before, end = -1, time.monotonic() + 10 * seconds
        while before != len(self.all) and time.monotonic() < end:
            before = len(self.all)
            if not self.read(seconds):
                break

    def give_up(self, why):
        print(f"FAILED: {why}; seen so far:")
        print(repr(self.all[-3000:]))
        print("\n".join(self.view.lines()))
        sys.stdout.flush()
        os.kill(self.pid, signal.SIGKILL)
        sys.exit(1)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.view.rows, self.view.columns = rows, columns
        self.view.reset()

    def screen(self):
        """The screen as text, without empty lines at its end."""
        return "\n".join(self.view.lines()).rstrip()

    def restored(self):
        """Whether the terminal's modes are what they were before the program ran."""
        return termios.tcgetattr(self.master) == self.before

    def wait(self):
        """The exit status; 128 + n for a signal, as a shell says it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.quiet(0.1)
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        self.give_up("expected the program to end")


class Shell(Terminal):
    """bash, interactive, with a plain prompt."""

    def __init__(self, *more, **options):
        super().__init__(["env", "HISTFILE=", "PS1=$ ", "bash", "--norc", "--noprofile", "-i", *more], **options)
        self.prompt()

    def prompt(self):
        return self.expect(r"\$ $")

    def command(self, text):
        """Runs one command and waits for the prompt after it."""
        self.send(text + "\n")
        self.expect(r"\r\n")
        self.prompt()

    def transcript(self):
        """All output, with process numbers made equal and line ends plain."""
        text = self.all.replace("\x1b[?2004h", "").replace("\x1b[?2004l", "").replace("\r\n", "\n").replace("\r", "")
        text = re.sub(r"^(\[\d+\]) \d+$", r"\1 PID", text, flags=re.M)
        return text
