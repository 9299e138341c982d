//! One system call.

use abi::UserAddr;
use platform::{Place, Pointee};
use sync::SysResult;
use vfs::Capability;

use crate::syscall::show::{Phase, Printer};
use crate::task::CurrentTask;

/// One system call: everything that is known of it.
pub struct Row {
    pub number: u16,
    pub name: &'static str,
    pub arguments: &'static [Argument],
    /// Decodes the registers and calls the handler. `None`: missing, `ENOSYS`.
    pub call: Option<Call>,
    /// Of a call that is missing: what Linux refuses it without (`EPERM`), before all else.
    pub needs: Option<Capability>,
    /// Prints one argument (by index).
    pub show: fn(usize, &[u64; 6], &mut Printer<'_>, Phase),
    pub support: Support,
    /// The nearest place where a platform may serve it: there it says the same as the handler, or hands it over.
    pub place: Place,
}

/// Serves a call with these argument registers.
pub(super) type Call = fn(&mut CurrentTask, &[u64; 6]) -> SysResult<Outcome>;

/// An argument of a row.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub name: &'static str,
    pub type_name: &'static str,
    /// Holds what the call gives back.
    pub is_output: bool,
    /// Registers that it takes.
    pub registers: usize,
    /// What of it may come along with the call.
    pub brings: Option<Pointee>,
    /// What it holds afterwards may go back together with the result.
    pub answers: bool,
}

/// How much of a call there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Full,
    /// What is missing of it, in words.
    Partial(&'static str),
    Missing(&'static str),
}

/// What a handler left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The result register's new value.
    Value(u64),
    /// The same, an address: printed so.
    Address(u64),
    /// The registers are as they shall be (`rt_sigreturn`, `execve`): do not touch the result.
    Resumed,
    /// The task is to end.
    Exited,
}

/// What handlers may return.
pub trait SyscallReturn {
    fn outcome(self) -> Outcome;
}

impl SyscallReturn for () {
    fn outcome(self) -> Outcome {
        Outcome::Value(0)
    }
}
impl SyscallReturn for usize {
    fn outcome(self) -> Outcome {
        Outcome::Value(self as u64)
    }
}
impl SyscallReturn for u64 {
    fn outcome(self) -> Outcome {
        Outcome::Value(self)
    }
}
impl SyscallReturn for u32 {
    fn outcome(self) -> Outcome {
        Outcome::Value(u64::from(self))
    }
}
impl SyscallReturn for i32 {
    fn outcome(self) -> Outcome {
        Outcome::Value(i64::from(self).cast_unsigned())
    }
}
impl SyscallReturn for i64 {
    fn outcome(self) -> Outcome {
        Outcome::Value(self.cast_unsigned())
    }
}
impl SyscallReturn for UserAddr {
    fn outcome(self) -> Outcome {
        Outcome::Address(self.0)
    }
}
impl SyscallReturn for crate::syscall::Fd {
    fn outcome(self) -> Outcome {
        self.0.outcome()
    }
}
impl SyscallReturn for crate::syscall::Pid {
    fn outcome(self) -> Outcome {
        self.0.outcome()
    }
}
impl SyscallReturn for Outcome {
    fn outcome(self) -> Outcome {
        self
    }
}

/// Makes the table. A row: `number name (argument: Type, …) = path::handler;`, with `, partial "what is missing"` and `, in Stub` or
/// `, in Delegated` (where else it may be served: [`Place`]) before the semicolon, or `missing "why, or what it waits for"` in place of the handler; with `, needs CAPABILITY`
/// behind that where Linux refuses the call to users, who then shall hear that and not `ENOSYS`.
macro_rules! syscalls {
    ($(
        $number:literal $name:ident ($($arg:ident : $type:ty),*)
        $(missing $why:literal $(, needs $needs:ident)?)? $(= $handler:path)? $(, partial $note:literal)? $(, in $place:ident)? ;
    )*) => {
        /// All rows, by number.
        pub static ROWS: &[$crate::syscall::Row] = &[$(
            $crate::syscall::row::row!(
                ($number $name $($arg : $type),*) [$($handler)?] [$($note)?] [$($why $($needs)?)?] [$($place)?]
            )
        ),*];
    };
}

macro_rules! row {
    (($number:literal $name:ident $($arg:ident : $type:ty),*) [$handler:path] [$($note:literal)?] [] [$($place:ident)?]) => {
        $crate::syscall::Row {
            call: Some(|task, words| {
                #[allow(unused_mut, unused_variables, reason = "rows without arguments")]
                let mut words = $crate::syscall::RegisterWords::new(words);
                $(let $arg = <$type as $crate::syscall::SyscallArg>::decode(&mut words);)*
                $handler(task, $($arg),*).map($crate::syscall::SyscallReturn::outcome)
            }),
            support: $crate::syscall::row::support!($($note)?),
            place: $crate::syscall::row::place!($($place)?),
            ..$crate::syscall::row::row!(($number $name $($arg : $type),*) [] [] [""] [])
        }
    };
    (($number:literal $name:ident $($arg:ident : $type:ty),*) [] [] [$why:literal $($needs:ident)?] []) => {
        $crate::syscall::Row {
            number: $number,
            name: stringify!($name),
            arguments: {
                const REGISTERS: usize = 0 $(+ <$type as $crate::syscall::SyscallArg>::REGISTERS)*;
                const { assert!(REGISTERS <= 6, "a system call has six registers") };
                &[$($crate::syscall::Argument {
                    name: stringify!($arg),
                    type_name: stringify!($type),
                    is_output: <$type as $crate::syscall::SyscallArg>::IS_OUTPUT,
                    registers: <$type as $crate::syscall::SyscallArg>::REGISTERS,
                    brings: <$type as $crate::syscall::SyscallArg>::BRINGS,
                    answers: <$type as $crate::syscall::SyscallArg>::ANSWERS,
                }),*]
            },
            call: None,
            needs: $crate::syscall::row::needs!($($needs)?),
            #[allow(unused, reason = "rows without arguments")]
            show: |index, words, printer, phase| {
                let (mut words, mut at) = ($crate::syscall::RegisterWords::new(words), 0usize);
                $({
                    let start = words.taken();
                    let argument = <$type as $crate::syscall::SyscallArg>::decode(&mut words);
                    if at == index {
                        printer.start = start;
                        return $crate::syscall::SyscallArg::show(&argument, printer, phase);
                    }
                    at += 1;
                })*
            },
            support: $crate::syscall::Support::Missing($why),
            place: platform::Place::Kernel,
        }
    };
}

macro_rules! support {
    () => {
        $crate::syscall::Support::Full
    };
    ($note:literal) => {
        $crate::syscall::Support::Partial($note)
    };
}

macro_rules! place {
    () => {
        platform::Place::Kernel
    };
    ($place:ident) => {
        platform::Place::$place
    };
}

macro_rules! needs {
    () => {
        None
    };
    ($capability:ident) => {
        Some(vfs::Capability::$capability)
    };
}

pub(crate) use {needs, place, row, support, syscalls};
