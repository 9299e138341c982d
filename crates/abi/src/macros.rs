//! The three forms that everything here has: flag words, enumerations and structures. Each keeps
//! whatever bits a guest gives, so that decoding never fails, and knows Linux's names, so that a trace
//! can print it.

/// A flag word: a `bitflags` type that keeps unknown bits, with Linux's names in `NAMES` and `Display`
/// (`O_CREAT|O_EXCL|0x80000000`, `0` when empty). Flags of several bits stand before their parts. With
/// `custom` before the name the type writes its own `Display`.
macro_rules! flags {
    () => {};
    ($(#[$meta:meta])* custom $name:ident: $int:ty, $prefix:literal {
        $($(#[doc = $doc:literal])* $flag:ident = $value:expr $(, $full:literal)?;)*
    } $($rest:tt)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)]
        #[repr(transparent)]
        pub struct $name($int);
        bitflags::bitflags! {
            impl $name: $int {
                $(
                    #[doc = concat!("`", $crate::macros::full_name!($prefix, $flag $(, $full)?), "`")]
                    $(#[doc = $doc])*
                    const $flag = $value;
                )*
                const _ = !0;
            }
        }
        impl $name {
            /// Every flag that Linux names: its bits and its name there.
            pub const NAMES: &'static [($int, &'static str)] =
                &[$(($value, $crate::macros::full_name!($prefix, $flag $(, $full)?)),)*];
            /// The bits that have a name.
            pub const KNOWN: $name = $name(0 $(| $value)*);

            /// Whether a bit is set that has no name.
            pub const fn has_unknown(self) -> bool {
                self.0 & !Self::KNOWN.0 != 0
            }
        }
        #[cfg(test)]
        const _: () = {
            // No flag may stand behind one that is a part of it: both would print.
            let all: &[$int] = &[$($value,)*];
            let mut later = 0;
            while later < all.len() {
                let mut earlier = 0;
                while earlier < later {
                    assert!(all[later] & all[earlier] != all[earlier]);
                    earlier += 1;
                }
                later += 1;
            }
        };
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
        impl $crate::FromRegister for $name {
            fn from_register(word: u64) -> Self {
                $name(<$int as $crate::FromRegister>::from_register(word))
            }
        }
        $crate::macros::flags! { $($rest)* }
    };
    ($(#[$meta:meta])* $name:ident: $int:ty, $prefix:literal { $($body:tt)* } $($rest:tt)*) => {
        $crate::macros::flags! { $(#[$meta])* custom $name: $int, $prefix { $($body)* } }
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::macros::write_flags(f, u64::from(self.0), $name::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name)), false)
            }
        }
        $crate::macros::flags! { $($rest)* }
    };
}

/// An enumeration: a newtype over the register's integer, any value representable, with Linux's names.
/// `Display` writes the name, or the number where there is none.
macro_rules! names {
    () => {};
    ($(#[$meta:meta])* custom $name:ident: $int:ty, $prefix:literal {
        $($(#[$cmeta:meta])* $item:ident = $value:expr $(, $full:literal)?;)*
    } $($rest:tt)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)]
        #[repr(transparent)]
        pub struct $name(pub $int);
        impl $name {
            $(
                #[doc = concat!("`", $crate::macros::full_name!($prefix, $item $(, $full)?), "`")]
                $(#[$cmeta])*
                pub const $item: $name = $name($value);
            )*
            /// Every value that Linux names, and its name there.
            pub const NAMES: &'static [($int, &'static str)] =
                &[$(($value, $crate::macros::full_name!($prefix, $item $(, $full)?)),)*];

            /// Linux's name for it; `None` where there is none.
            pub fn name(self) -> Option<&'static str> {
                Self::NAMES.iter().find(|(value, _)| *value == self.0).map(|(_, name)| *name)
            }
        }
        #[cfg(test)]
        const _: () = {
            // No value may have two names: the second would never print.
            let all: &[$int] = &[$($value,)*];
            let mut later = 0;
            while later < all.len() {
                let mut earlier = 0;
                while earlier < later {
                    assert!(all[later] != all[earlier]);
                    earlier += 1;
                }
                later += 1;
            }
        };
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
        impl $crate::FromRegister for $name {
            fn from_register(word: u64) -> Self {
                $name(<$int as $crate::FromRegister>::from_register(word))
            }
        }
        $crate::macros::names! { $($rest)* }
    };
    ($(#[$meta:meta])* $name:ident: $int:ty, $prefix:literal { $($body:tt)* } $($rest:tt)*) => {
        $crate::macros::names! { $(#[$meta])* custom $name: $int, $prefix { $($body)* } }
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None if i64::from(self.0) > 0xffff => write!(f, "{:#x}", self.0),
                    None => write!(f, "{}", self.0),
                }
            }
        }
        $crate::macros::names! { $($rest)* }
    };
}

/// A structure that lies in guest memory: C layout, every bit pattern valid, no hidden padding. The
/// number after its name is the kernel's size in bytes and the one before each field the kernel's
/// offset; both are checked when this crate is compiled.
macro_rules! layout {
    ($(
        $(#[$meta:meta])*
        struct $name:ident: $size:literal { $($(#[$fmeta:meta])* $offset:literal $field:ident: $ty:ty,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)]
        #[repr(C)]
        #[allow(missing_docs, reason = "the fields carry Linux's names")]
        pub struct $name { $($(#[$fmeta])* pub $field: $ty,)* }
        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
        };
        impl Default for $name {
            fn default() -> $name {
                zerocopy::FromZeros::new_zeroed()
            }
        }
    )*};
}

macro_rules! full_name {
    ($prefix:literal, $item:ident) => {
        concat!($prefix, stringify!($item))
    };
    ($prefix:literal, $item:ident, $full:literal) => {
        $full
    };
}

pub(crate) use {flags, full_name, layout, names};

/// Writes the names of the bits in `value`, joined by `|`, the rest in hex, `0` for nothing at all.
/// With `more` something was written already: then nothing is written for zero, and `|` comes first.
pub(crate) fn write_flags(
    f: &mut core::fmt::Formatter<'_>,
    value: u64,
    names: impl Iterator<Item = (u64, &'static str)>,
    mut more: bool,
) -> core::fmt::Result {
    let mut rest = value;
    for (bits, name) in names {
        if bits != 0 && value & bits == bits && rest & bits != 0 {
            if more {
                f.write_str("|")?;
            }
            f.write_str(name)?;
            more = true;
            rest &= !bits;
        }
    }
    match (rest, more) {
        (0, true) => Ok(()),
        (0, false) => f.write_str("0"),
        (_, true) => write!(f, "|{rest:#x}"),
        (_, false) => write!(f, "{rest:#x}"),
    }
}
