//! Structures field by field.

/// `Type { name: how field, … }`, with `; "..."` behind the fields if some are left out. How: `n` as it displays
/// itself, `x` in hexadecimal, `p` as a pointer, `s` as a structure.
macro_rules! shown {
    ($($type:ident { $($name:ident: $how:ident $field:ident),* $(; $more:literal)? })*) => {$(
        impl $crate::syscall::show::Show for $type {
            fn show(&self, printer: &mut $crate::syscall::show::Printer<'_>) {
                let mut before = "{";
                $(
                    let value = self.$field;
                    printer.text(format_args!("{before}{}=", stringify!($name)));
                    $crate::syscall::show::structure::field!(printer, value, $how);
                    before = ", ";
                )*
                $(printer.text(format_args!("{before}{}", $more));)?
                let _ = before;
                printer.out.push('}');
            }
        }
    )*};
}

macro_rules! field {
    ($printer:ident, $value:ident, n) => {
        $printer.text(format_args!("{}", $value))
    };
    ($printer:ident, $value:ident, x) => {
        $printer.text(format_args!("{:#x}", $value))
    };
    ($printer:ident, $value:ident, p) => {
        $printer.address(abi::UserAddr($value))
    };
    ($printer:ident, $value:ident, s) => {
        $crate::syscall::show::Show::show(&$value, $printer)
    };
}

pub(super) use {field, shown};
