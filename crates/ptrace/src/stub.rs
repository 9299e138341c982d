//! The stub: the only code of ours in a guest process, one page of position-independent assembly, and the
//! ELF image around it.
//!
//! The stub has no stack, no data and no state. The kernel sets a guest thread's registers to one of its
//! entries, lets it run natively ([`crate::context`]), and it stops at an `int3` whose place tells that it
//! is done. While a thread runs here nothing else can change what it does: its text cannot be written or
//! replaced by guests (they make no host calls), and what it reads lies in its slot's request page, which
//! the guest has mapped read-only.
//!
//! Layout above [`abi::GUEST_TOP`], at a base drawn at each start of the kernel: the text page; from
//! [`REQUESTS`] on one page for each slot; from [`SCRATCH`] on [`SCRATCH_SIZE`] bytes for each slot.
//!
//! # Safety
//! The assembly is data here: it is never executed in this process.
#![allow(unsafe_code, reason = "the stub's assembly and its labels")]

use std::arch::global_asm;

use abi::{GUEST_TOP, PAGE_SIZE};

pub(crate) use guest_process::CONTROL_FD;

/// The first descriptor that a host call gets by `SCM_RIGHTS`: the lowest free one.
pub(crate) const FIRST_PASSED_FD: u32 = CONTROL_FD + 1;
/// Guest threads in one address space, at most.
pub(crate) const SLOTS: u64 = 16384;
/// Bytes of a slot in the scratch area.
pub(crate) const SCRATCH_SIZE: u64 = 256;
/// Where the request pages begin, from the base.
const REQUESTS: u64 = 16 * PAGE_SIZE;
/// Where the scratch area begins, from the base.
const SCRATCH: u64 = REQUESTS + SLOTS * PAGE_SIZE + 16 * PAGE_SIZE;
/// Where it ends.
const END: u64 = SCRATCH + SLOTS * SCRATCH_SIZE;

// The text. `receive` takes the descriptors that the kernel has sent: the message header lies in the
// scratch area (r13), since the host writes into it; what a guest thread scribbles there in the meantime
// only decides where in its own writable memory the host writes.
global_asm!(
    r#"
    .macro umlaut_receive failed
        lea     rax, [r13 + 64]
        mov     qword ptr [r13], 0          // msg_name
        mov     qword ptr [r13 + 8], 0      // msg_namelen
        mov     qword ptr [r13 + 16], rax   // msg_iov
        mov     qword ptr [r13 + 24], 1     // msg_iovlen
        lea     rcx, [r13 + 96]
        mov     qword ptr [r13 + 32], rcx   // msg_control
        mov     qword ptr [r13 + 40], 160   // msg_controllen: 36 descriptors
        mov     qword ptr [r13 + 48], 0     // msg_flags
        lea     rcx, [r13 + 80]
        mov     qword ptr [rax], rcx        // iov_base
        mov     qword ptr [rax + 8], 1      // iov_len
        mov     eax, 47                     // recvmsg
        mov     edi, {control}
        mov     rsi, r13
        mov     edx, 0x40000040             // MSG_CMSG_CLOEXEC | MSG_DONTWAIT
        syscall
        cmp     rax, -4095
        jae     \failed
    .endm
    .macro umlaut_close_passed
        mov     eax, 436                    // close_range
        mov     edi, {passed}
        mov     esi, 0xffffffff
        xor     edx, edx
        syscall
    .endm

    .pushsection .rodata.umlaut_stub, "a", @progbits
    .balign 16
    .globl umlaut_stub_start, umlaut_stub_call, umlaut_stub_call_end, umlaut_stub_batch
    .globl umlaut_stub_batch_end, umlaut_stub_exchange, umlaut_stub_exchange_end, umlaut_stub_fork
    .globl umlaut_stub_fork_end, umlaut_stub_thread, umlaut_stub_thread_end, umlaut_stub_end
    // The image's entry, and where threads that nobody drives sleep.
umlaut_stub_start:
    mov     eax, 34                         // pause
    syscall
    jmp     umlaut_stub_start

    // One host call, in its registers.
umlaut_stub_call:
    syscall
    int3
umlaut_stub_call_end:

    // Host calls as records of 64 bytes: number, six arguments, unused. rbx: the first; rbp: behind the
    // last; r12: whether descriptors come first; r13: scratch. Out: rbx the failed record or rbp, r14 the
    // last result. Descriptors are closed whatever happens.
umlaut_stub_batch:
    xor     r14d, r14d
    test    r12, r12
    jz      2f
    umlaut_receive 3f
2:  cmp     rbx, rbp
    jae     4f
    mov     rax, [rbx]
    mov     rdi, [rbx + 8]
    mov     rsi, [rbx + 16]
    mov     rdx, [rbx + 24]
    mov     r10, [rbx + 32]
    mov     r8, [rbx + 40]
    mov     r9, [rbx + 48]
    syscall
    mov     r14, rax
    cmp     rax, -4095
    jae     4f
    add     rbx, 64
    jmp     2b
3:  mov     r14, rax
4:  test    r12, r12
    jz      5f
    umlaut_close_passed
5:  int3
umlaut_stub_batch_end:

    // rdi: a word; eax: old; esi: new. Out: eax what was there. A fault stops at the first instruction.
umlaut_stub_exchange:
    lock cmpxchg dword ptr [rdi], esi
    int3
umlaut_stub_exchange_end:

    // A new process. Its control socket comes first. rbx: clone flags; rbp: the kernel's pid; r13: scratch.
    // Out: r14 clone's result. The child uses registers only: a vfork child shares all memory.
umlaut_stub_fork:
    umlaut_receive 6f
    mov     eax, 56                         // clone
    mov     rdi, rbx
    xor     esi, esi
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    test    rax, rax
    jz      7f
6:  mov     r14, rax
    umlaut_close_passed
    int3
umlaut_stub_fork_end:
7:  mov     eax, 33                         // dup2
    mov     edi, {passed}
    mov     esi, {control}
    syscall
    umlaut_close_passed
    mov     eax, 157                        // prctl(PR_SET_PDEATHSIG, SIGKILL)
    mov     edi, 1
    mov     esi, 9
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
    syscall
    mov     eax, 110                        // getppid: armed too late if the kernel is gone
    syscall
    cmp     rax, rbp
    jne     8f
    mov     eax, 1                          // write: the host stamps our credentials on it
    mov     edi, {control}
    lea     rsi, [rip + umlaut_stub_start]
    mov     edx, 1
    syscall
    jmp     umlaut_stub_start
8:  mov     eax, 231                        // exit_group
    mov     edi, 1
    syscall
    jmp     8b

    // A new thread. rdi: clone flags.
umlaut_stub_thread:
    mov     eax, 56                         // clone
    syscall
    test    rax, rax
    jz      umlaut_stub_start
    int3
umlaut_stub_thread_end:
    jmp     umlaut_stub_start
umlaut_stub_end:
    .popsection
"#,
    control = const CONTROL_FD,
    passed = const FIRST_PASSED_FD,
);

unsafe extern "C" {
    static umlaut_stub_start: u8;
    static umlaut_stub_call: u8;
    static umlaut_stub_call_end: u8;
    static umlaut_stub_batch: u8;
    static umlaut_stub_batch_end: u8;
    static umlaut_stub_exchange: u8;
    static umlaut_stub_exchange_end: u8;
    static umlaut_stub_fork: u8;
    static umlaut_stub_fork_end: u8;
    static umlaut_stub_thread: u8;
    static umlaut_stub_thread_end: u8;
    static umlaut_stub_end: u8;
}

/// An entry of the stub: where it begins, and the instruction pointer when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) done: u64,
}

/// Where everything of ours lies in guest processes: the same in all of one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    base: u64,
}

impl Layout {
    /// Draws a base.
    pub(crate) fn random() -> std::io::Result<Layout> {
        let mut bytes = [0u8; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        let lowest = GUEST_TOP + 16 * PAGE_SIZE;
        let pages = (guest_process::CEILING - END - lowest) / PAGE_SIZE;
        Ok(Layout { base: lowest + u64::from_ne_bytes(bytes) % pages * PAGE_SIZE })
    }

    /// The text page, where parked threads sleep and where the image is entered.
    pub(crate) fn text(self) -> u64 {
        self.base
    }

    /// Whether `address` lies in the text page.
    #[cfg(test)]
    pub(crate) fn in_text(self, address: u64) -> bool {
        (self.base..self.base + PAGE_SIZE).contains(&address)
    }

    /// The request pages of all slots, `(start, bytes)`.
    pub(crate) fn requests(self) -> (u64, u64) {
        (self.base + REQUESTS, SLOTS * PAGE_SIZE)
    }

    /// The scratch areas of all slots, `(start, bytes)`.
    pub(crate) fn scratch_area(self) -> (u64, u64) {
        (self.base + SCRATCH, SLOTS * SCRATCH_SIZE)
    }

    /// The request page of a slot.
    pub(crate) fn request(self, slot: u32) -> u64 {
        self.base + REQUESTS + u64::from(slot) * PAGE_SIZE
    }

    /// The scratch area of a slot.
    pub(crate) fn scratch(self, slot: u32) -> u64 {
        self.base + SCRATCH + u64::from(slot) * SCRATCH_SIZE
    }

    pub(crate) fn call(self) -> Entry {
        self.entry(&raw const umlaut_stub_call, &raw const umlaut_stub_call_end)
    }

    pub(crate) fn batch(self) -> Entry {
        self.entry(&raw const umlaut_stub_batch, &raw const umlaut_stub_batch_end)
    }

    pub(crate) fn exchange(self) -> Entry {
        self.entry(&raw const umlaut_stub_exchange, &raw const umlaut_stub_exchange_end)
    }

    pub(crate) fn fork(self) -> Entry {
        self.entry(&raw const umlaut_stub_fork, &raw const umlaut_stub_fork_end)
    }

    pub(crate) fn thread(self) -> Entry {
        self.entry(&raw const umlaut_stub_thread, &raw const umlaut_stub_thread_end)
    }

    fn entry(self, start: *const u8, done: *const u8) -> Entry {
        let first = (&raw const umlaut_stub_start).addr();
        let at = |label: *const u8| self.base + label.addr().wrapping_sub(first) as u64;
        Entry { start: at(start), done: at(done) }
    }

    /// The stub as an executable: one segment, readable and executable, at the base; nothing else.
    pub(crate) fn image(self) -> Vec<u8> {
        guest_process::executable(self.base, text())
    }
}

/// The stub's text.
fn text() -> &'static [u8] {
    let start = &raw const umlaut_stub_start;
    let len = (&raw const umlaut_stub_end).addr() - start.addr();
    // SAFETY: the labels bound one read-only section of this program.
    unsafe { std::slice::from_raw_parts(start, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits_its_page_and_entries_lie_in_it() {
        assert!(text().len() < PAGE_SIZE as usize);
        let layout = Layout::random().unwrap();
        for entry in [layout.call(), layout.batch(), layout.exchange(), layout.fork(), layout.thread()] {
            assert!(layout.in_text(entry.start) && layout.in_text(entry.done) && entry.start < entry.done);
            let before_done = (entry.done - layout.text()) as usize - 1;
            assert_eq!(text()[before_done], 0xcc, "an entry ends with int3");
        }
    }

    #[test]
    fn layouts_lie_between_the_guest_and_the_vdso() {
        for _ in 0..1000 {
            let layout = Layout::random().unwrap();
            assert!(layout.text() > GUEST_TOP && layout.text().is_multiple_of(PAGE_SIZE));
            assert!(layout.text() + END <= guest_process::CEILING);
            let (requests, len) = layout.requests();
            assert_eq!(layout.request(SLOTS as u32 - 1) + PAGE_SIZE, requests + len);
            let (scratch, len) = layout.scratch_area();
            assert_eq!(layout.scratch(SLOTS as u32 - 1) + SCRATCH_SIZE, scratch + len);
        }
    }
}
