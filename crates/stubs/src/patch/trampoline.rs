//! Trampolines: what a patched site jumps to.
//!
//! Each does the displaced instruction, loads into rcx where the guest goes on (`syscall` leaves that there as well),
//! and jumps to the stub by a pointer at the trampolines' end; or, where the instruction behind the call is displaced,
//! goes on in the trampoline with that (rcx as by the site's own `syscall`), and then back. It touches neither stack nor
//! flags.

use platform::{Displaced, PatchedSite};

use super::pages;
use super::sites::Site;

/// What was written.
pub(super) struct Written {
    /// The trampolines, filled up to whole pages.
    pub(super) code: Vec<u8>,
    pub(super) sites: Vec<PatchedSite>,
}

const JMP: u8 = 0xe9;
/// `lea rcx, [rip + …]` and `jmp [rip + …]`, without their displacements.
const LEA_RCX: [u8; 3] = [0x48, 0x8d, 0x0d];
const JMP_TO: [u8; 2] = [0xff, 0x25];
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Bytes of a jump.
const JUMP: usize = 5;
/// Fills what of a displaced instruction the jump does not: `nop`.
const NOP: u8 = 0x90;
/// Fills the last page: `int3`.
const INT3: u8 = 0xcc;

/// Writes trampolines for these sites, `distance` bytes behind the start of the text, and the jumps to them. `None`: too
/// far apart.
pub(super) fn write(text: &mut [u8], sites: &[Site], distance: u64, entry: u64) -> Option<Written> {
    let length: usize = sites.iter().map(Site::trampoline_len).sum();
    let pointer = length.next_multiple_of(8);
    let distance = i64::try_from(distance).ok()?;
    let mut code = Vec::with_capacity(pointer + 8);
    let mut patched = Vec::with_capacity(sites.len());
    for site in sites {
        let start = code.len();
        let instruction = match site.displaced {
            Displaced::Before(len) => text.get(site.at..site.at + usize::from(len))?.to_vec(),
            Displaced::Behind(len) => {
                let from = site.at + SYSCALL.len();
                text.get(from..from + usize::from(len))?.to_vec()
            }
        };
        let mut displaced = [0; PatchedSite::MAX_INSTRUCTION];
        displaced.get_mut(..instruction.len())?.copy_from_slice(&instruction);
        patched.push(PatchedSite {
            trampoline: u32::try_from(start).ok()?,
            site: u32::try_from(site.at).ok()?,
            displaced: site.displaced,
            instruction: displaced,
        });
        let covered = match site.displaced {
            Displaced::Before(len) => {
                code.extend_from_slice(&instruction);
                let back = site.at + usize::from(len) + SYSCALL.len();
                enter(&mut code, back as i64 - distance, pointer)?;
                usize::from(len)
            }
            Displaced::Behind(len) => {
                let back = start + PatchedSite::ENTERING as usize;
                enter(&mut code, back as i64, pointer)?;
                // For a guest whose GS is its own, and to make the call again.
                code.extend_from_slice(&SYSCALL);
                load_rcx(&mut code, (site.at + SYSCALL.len()) as i64 - distance)?;
                code.extend_from_slice(&instruction);
                let behind = site.at + SYSCALL.len() + usize::from(len);
                jump(&mut code, behind as i64 - distance)?;
                SYSCALL.len() + usize::from(len)
            }
        };
        let mut leap = Vec::with_capacity(covered);
        leap.push(JMP);
        let displacement = distance + start as i64 - (site.at + JUMP) as i64;
        leap.extend_from_slice(&i32::try_from(displacement).ok()?.to_le_bytes());
        leap.resize(covered, NOP);
        text.get_mut(site.at..site.at + covered)?.copy_from_slice(&leap);
    }
    code.resize(pointer, INT3);
    code.extend_from_slice(&entry.to_le_bytes());
    code.resize(usize::try_from(pages(code.len() as u64)).ok()?, INT3);
    Some(Written { code, sites: patched })
}

impl Site {
    fn trampoline_len(&self) -> usize {
        let entering = PatchedSite::ENTERING as usize - SYSCALL.len();
        match self.displaced {
            Displaced::Before(len) => usize::from(len) + entering,
            Displaced::Behind(len) => {
                entering + SYSCALL.len() + PatchedSite::RELOAD as usize + usize::from(len) + JUMP
            }
        }
    }
}

/// `lea rcx, [back]; jmp [pointer]`; places from the first trampoline on.
fn enter(code: &mut Vec<u8>, back: i64, pointer: usize) -> Option<()> {
    load_rcx(code, back)?;
    code.extend_from_slice(&JMP_TO);
    let next = code.len() as i64 + 4;
    code.extend_from_slice(&i32::try_from(pointer as i64 - next).ok()?.to_le_bytes());
    Some(())
}

/// `lea rcx, [at]`, likewise.
fn load_rcx(code: &mut Vec<u8>, at: i64) -> Option<()> {
    code.extend_from_slice(&LEA_RCX);
    let next = code.len() as i64 + 4;
    code.extend_from_slice(&i32::try_from(at - next).ok()?.to_le_bytes());
    Some(())
}

/// `jmp`, likewise.
fn jump(code: &mut Vec<u8>, to: i64) -> Option<()> {
    code.push(JMP);
    let next = code.len() as i64 + 4;
    code.extend_from_slice(&i32::try_from(to - next).ok()?.to_le_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use iced_x86::{Code, Decoder, DecoderOptions, Register};

    use super::*;

    #[test]
    fn a_site_leads_to_its_trampoline_and_that_to_the_entry_and_back() {
        let mut text = vec![0x90; 8192];
        text[100..107].copy_from_slice(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05]);
        text[300..309].copy_from_slice(&[0x48, 0xc7, 0xc0, 60, 0, 0, 0, 0x0f, 0x05]);
        let sites = [(100, 5), (300, 7)].map(|(at, len)| Site { at, displaced: Displaced::Before(len) });
        let written = write(&mut text, &sites, 0x10_0000, 0x7fff_1234_5678).unwrap();
        for (site, patched) in sites.iter().zip(&written.sites) {
            let len = site.end() - site.at;
            let mut decoder = Decoder::with_ip(64, &text[site.at..], site.at as u64, DecoderOptions::NONE);
            let jump = decoder.decode();
            assert_eq!(jump.near_branch_target(), 0x10_0000 + u64::from(patched.trampoline));
            assert_eq!(text[site.end()..][..2], [0x0f, 0x05], "the syscall stays");
            let start = patched.trampoline as usize;
            let ip = 0x10_0000 + start as u64;
            let mut decoder = Decoder::with_ip(64, &written.code[start..], ip, DecoderOptions::NONE);
            let (load, lea, jump) = (decoder.decode(), decoder.decode(), decoder.decode());
            assert_eq!(load.len(), len);
            assert_eq!((lea.code(), lea.op0_register()), (Code::Lea_r64_m, Register::RCX));
            assert_eq!(lea.ip_rel_memory_address(), (site.end() + 2) as u64);
            assert_eq!(jump.code(), Code::Jmp_rm64);
            let pointer = (jump.ip_rel_memory_address() - 0x10_0000) as usize;
            assert_eq!(written.code[pointer..pointer + 8], 0x7fff_1234_5678u64.to_le_bytes());
        }
        assert_eq!(written.code.len(), 4096);
    }

    /// What others are told of a site is what is in the text, and what was.
    #[test]
    fn the_code_of_a_site_is_told() {
        let mut text = vec![0x90; 8192];
        text[100..107].copy_from_slice(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05]);
        text[300..309].copy_from_slice(&[0x48, 0xc7, 0xc0, 60, 0, 0, 0, 0x0f, 0x05]);
        text[500..508].copy_from_slice(&[0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff]);
        let linked = text.clone();
        let sites = [(100, Displaced::Before(5)), (300, Displaced::Before(7)), (500, Displaced::Behind(6))]
            .map(|(at, displaced)| Site { at, displaced });
        let written = write(&mut text, &sites, 0x10_0000, 0x7fff_1234_5678).unwrap();
        let program = platform::PatchedProgram {
            file: std::fs::File::open("/dev/null").unwrap().into(),
            offset: 0,
            len: 8192,
            distance: 0x10_0000,
            trampolines: written.code.len() as u64,
            sites: written.sites,
        };
        let codes: Vec<_> = program.sites_in(0, 8192).collect();
        assert_eq!(codes.len(), 3);
        for code in codes {
            let place = code.at as usize..code.at as usize + code.patched.len();
            assert_eq!(text[place.clone()], code.patched);
            assert_eq!(linked[place], code.linked);
        }
    }

    #[test]
    fn what_is_behind_the_call_is_done_in_the_trampoline() {
        let mut text = vec![0x90; 4096];
        text[100..108].copy_from_slice(&[0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff]);
        let site = Site { at: 100, displaced: Displaced::Behind(6) };
        let written = write(&mut text, &[site], 0x10_0000, 0x7fff_1234_5678).unwrap();
        let mut decoder = Decoder::with_ip(64, &text[100..], 100, DecoderOptions::NONE);
        assert_eq!(decoder.decode().near_branch_target(), 0x10_0000);
        assert_eq!(text[105..108], [0x90; 3]);
        let mut decoder = Decoder::with_ip(64, &written.code, 0x10_0000, DecoderOptions::NONE);
        let codes: Vec<_> = (0..6).map(|_| decoder.decode()).collect();
        assert_eq!(codes[0].ip_rel_memory_address(), 0x10_0000 + u64::from(PatchedSite::ENTERING));
        assert_eq!(codes[1].code(), Code::Jmp_rm64);
        assert_eq!(codes[2].code(), Code::Syscall);
        assert_eq!(codes[3].ip(), codes[0].ip_rel_memory_address());
        assert_eq!(codes[3].ip_rel_memory_address(), 102, "as the site's own syscall leaves rcx");
        assert_eq!(codes[4].code(), Code::Cmp_RAX_imm32);
        assert_eq!(codes[5].near_branch_target(), 108);
        assert_eq!(site.trampoline_len() as u64, codes[5].next_ip() - 0x10_0000);
    }

    #[test]
    fn too_far_is_refused() {
        let mut text = vec![0xb8, 39, 0, 0, 0, 0x0f, 0x05];
        assert!(write(&mut text, &[Site { at: 0, displaced: Displaced::Before(5) }], 1 << 32, 0).is_none());
    }
}
