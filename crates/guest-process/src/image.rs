//! Executables of one segment, in memory.

use abi::PAGE_SIZE;

/// An executable that holds `text`, readable and executable, at `base`, which is where it is entered.
pub fn executable(base: u64, text: &[u8]) -> Vec<u8> {
    let mut image = vec![0; PAGE_SIZE as usize];
    let headers = headers(base, text.len() as u64);
    if let Some(start) = image.get_mut(..headers.len()) {
        start.copy_from_slice(&headers);
    }
    image.extend_from_slice(text);
    image
}

const HEADERS: usize = 64 + 2 * 56;

/// The ELF headers of an executable whose text, `len` bytes from the file's second page on, is mapped and
/// entered at `base`.
fn headers(base: u64, len: u64) -> [u8; HEADERS] {
    const PT_LOAD: u64 = 1;
    const PT_GNU_STACK: u64 = 0x6474_e551;
    const READ_EXECUTE: u64 = 5;
    const READ_WRITE: u64 = 6;
    let words: [u64; HEADERS / 8] = [
        // Elf64_Ehdr: magic, 64-bit, little endian, System V; ET_EXEC, EM_X86_64, version 1; entry; where
        // the program headers are; no section headers; sizes and numbers.
        0x0001_0102_464c_457f,
        0,
        1 << 32 | 62 << 16 | 2,
        base,
        64,
        0,
        56 << 48 | 64 << 32,
        2,
        PT_LOAD | READ_EXECUTE << 32,
        PAGE_SIZE,
        base,
        base,
        len,
        len,
        PAGE_SIZE,
        PT_GNU_STACK | READ_WRITE << 32,
        0,
        0,
        0,
        0,
        0,
        16,
    ];
    let mut bytes = [0; HEADERS];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// An executable that exits with status 0 at once, to try whether such a thing can be executed.
pub fn exiting_image() -> [u8; 2 * PAGE_SIZE as usize] {
    // mov eax, 60; xor edi, edi; syscall
    const EXIT: [u8; 9] = [0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
    let mut image = [0; 2 * PAGE_SIZE as usize];
    let headers = headers(0x40_0000, EXIT.len() as u64);
    for (place, byte) in image.iter_mut().zip(headers) {
        *place = byte;
    }
    for (place, byte) in image.iter_mut().skip(PAGE_SIZE as usize).zip(EXIT) {
        *place = byte;
    }
    image
}
