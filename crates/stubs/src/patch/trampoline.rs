//! Trampolines: what a patched site jumps to.
//!
//! Each does the displaced instruction, loads into rcx where the guest goes on (`syscall` leaves that there as well),
//! and jumps to the stub by a pointer at the trampolines' end. It touches neither stack nor flags.

use platform::PatchedSite;

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
/// Bytes of both.
const TAIL: usize = 7 + 6;
const SYSCALL_LEN: usize = 2;
/// Fills what of a displaced instruction the jump does not: `nop`.
const NOP: u8 = 0x90;
/// Fills the last page: `int3`.
const INT3: u8 = 0xcc;

/// Writes trampolines for these sites, `distance` bytes behind the start of the text, and the jumps to them. `None`: too
/// far apart.
pub(super) fn write(text: &mut [u8], sites: &[Site], distance: u64, entry: u64) -> Option<Written> {
    let length: usize = sites.iter().map(|site| site.len + TAIL).sum();
    let pointer = length.next_multiple_of(8);
    let distance = i64::try_from(distance).ok()?;
    let mut code = Vec::with_capacity(pointer + 8);
    let mut patched = Vec::with_capacity(sites.len());
    for site in sites {
        let place = distance + code.len() as i64;
        let at = site.at as i64;
        patched.push(PatchedSite {
            trampoline: u32::try_from(code.len()).ok()?,
            site: u32::try_from(site.at).ok()?,
            displaced: u8::try_from(site.len).ok()?,
        });
        let instruction = text.get_mut(site.at..site.at + site.len)?;
        code.extend_from_slice(instruction);
        code.extend_from_slice(&LEA_RCX);
        let next = distance + code.len() as i64 + 4;
        let back = at + (site.len + SYSCALL_LEN) as i64;
        code.extend_from_slice(&i32::try_from(back - next).ok()?.to_le_bytes());
        code.extend_from_slice(&JMP_TO);
        let next = code.len() as i64 + 4;
        code.extend_from_slice(&i32::try_from(pointer as i64 - next).ok()?.to_le_bytes());
        let jump = i32::try_from(place - (at + 5)).ok()?.to_le_bytes();
        instruction.fill(NOP);
        let (first, displacement) = instruction.split_first_mut()?;
        *first = JMP;
        displacement.get_mut(..4)?.copy_from_slice(&jump);
    }
    code.resize(pointer, INT3);
    code.extend_from_slice(&entry.to_le_bytes());
    code.resize(usize::try_from(pages(code.len() as u64)).ok()?, INT3);
    Some(Written { code, sites: patched })
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
        let sites = [Site { at: 100, len: 5 }, Site { at: 300, len: 7 }];
        let written = write(&mut text, &sites, 0x10_0000, 0x7fff_1234_5678).unwrap();
        for (site, patched) in sites.iter().zip(&written.sites) {
            let mut decoder = Decoder::with_ip(64, &text[site.at..], site.at as u64, DecoderOptions::NONE);
            let jump = decoder.decode();
            assert_eq!(jump.near_branch_target(), 0x10_0000 + u64::from(patched.trampoline));
            assert_eq!(text[site.at + site.len..][..2], [0x0f, 0x05], "the syscall stays");
            let start = patched.trampoline as usize;
            let ip = 0x10_0000 + start as u64;
            let mut decoder = Decoder::with_ip(64, &written.code[start..], ip, DecoderOptions::NONE);
            let (load, lea, jump) = (decoder.decode(), decoder.decode(), decoder.decode());
            assert_eq!(load.len(), site.len);
            assert_eq!((lea.code(), lea.op0_register()), (Code::Lea_r64_m, Register::RCX));
            assert_eq!(lea.ip_rel_memory_address(), (site.at + site.len + 2) as u64);
            assert_eq!(jump.code(), Code::Jmp_rm64);
            let pointer = (jump.ip_rel_memory_address() - 0x10_0000) as usize;
            assert_eq!(written.code[pointer..pointer + 8], 0x7fff_1234_5678u64.to_le_bytes());
        }
        assert_eq!(written.code.len(), 4096);
    }

    #[test]
    fn too_far_is_refused() {
        let mut text = vec![0xb8, 39, 0, 0, 0, 0x0f, 0x05];
        assert!(write(&mut text, &[Site { at: 0, len: 5 }], 1 << 32, 0).is_none());
    }
}
