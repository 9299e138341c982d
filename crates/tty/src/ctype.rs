//! The kernel's own character classes (`lib/ctype.c`): Latin-1, whatever the locale. Echo, erasing and the
//! case flags go by them.

/// `iscntrl`: 0x00 to 0x1f and DEL. The C1 range is no control there.
pub(crate) const fn is_control(c: u8) -> bool {
    c < 0x20 || c == 0x7f
}

/// `isalnum`: ASCII letters and digits, and the Latin-1 letters.
pub(crate) const fn is_alphanumeric(c: u8) -> bool {
    c.is_ascii_alphanumeric() || is_latin1_upper(c) || is_latin1_lower(c)
}

/// `tolower`.
pub(crate) const fn to_lower(c: u8) -> u8 {
    if c.is_ascii_uppercase() || is_latin1_upper(c) { c.wrapping_add(0x20) } else { c }
}

/// `toupper`. 0xdf becomes 0xbf and 0xff becomes 0xdf, as in the kernel.
pub(crate) const fn to_upper(c: u8) -> u8 {
    if c.is_ascii_lowercase() || is_latin1_lower(c) { c.wrapping_sub(0x20) } else { c }
}

/// Whether it continues a UTF-8 character.
pub(crate) const fn is_utf8_continuation(c: u8) -> bool {
    c & 0xc0 == 0x80
}

const fn is_latin1_upper(c: u8) -> bool {
    matches!(c, 0xc0..=0xd6 | 0xd8..=0xde)
}

const fn is_latin1_lower(c: u8) -> bool {
    matches!(c, 0xdf..=0xf6 | 0xf8..=0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_latin1() {
        assert!(is_control(0) && is_control(0x1f) && is_control(0x7f));
        assert!(!is_control(b' ') && !is_control(0x80) && !is_control(0x9f));
        assert!(is_alphanumeric(b'a') && is_alphanumeric(b'0') && is_alphanumeric(0xe9));
        assert!(!is_alphanumeric(b'_') && !is_alphanumeric(0xd7) && !is_alphanumeric(0xf7));
    }

    #[test]
    fn case_mapping_is_the_kernels() {
        assert_eq!((to_lower(b'A'), to_lower(0xc9), to_lower(0xd7)), (b'a', 0xe9, 0xd7));
        assert_eq!((to_upper(b'a'), to_upper(0xe9), to_upper(0xf7)), (b'A', 0xc9, 0xf7));
        assert_eq!((to_upper(0xdf), to_upper(0xff), to_lower(0xdf)), (0xbf, 0xdf, 0xdf));
    }
}
