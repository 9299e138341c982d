//! What a platform may bring along with a call, and take back with its result: from the types of its row's arguments.

use platform::CallShape;

use crate::syscall::table;

/// The shape of a call. One that is missing, or is none, brings nothing.
pub fn shape(number: u16) -> CallShape {
    let Some(row) = table::row(number.into()).filter(|row| row.call.is_some()) else {
        return CallShape::default();
    };
    let mut shape = CallShape { place: row.place, ..CallShape::default() };
    let mut places = shape.brings.iter_mut();
    let mut register = 0u8;
    for argument in row.arguments {
        if let Some(pointee) = argument.brings
            && let Some(place) = places.next()
        {
            *place = Some((register, pointee));
        }
        shape.answers |= argument.answers;
        register = register.saturating_add(u8::try_from(argument.registers).unwrap_or(u8::MAX));
    }
    shape
}

#[cfg(test)]
mod tests {
    use platform::{Place, Pointee};

    use super::*;

    fn shape_of(name: &str) -> CallShape {
        shape(table::rows().find(|row| row.name == name).expect("a row").number)
    }

    #[test]
    fn shapes_follow_from_types() {
        let rename = [Some((1, Pointee::String)), Some((3, Pointee::String))];
        assert_eq!(shape_of("renameat2"), CallShape { brings: rename, ..CallShape::default() });
        let stat = [Some((1, Pointee::String)), None];
        assert_eq!(shape_of("newfstatat"), CallShape { brings: stat, answers: true, place: Place::Kernel });
        let write = [Some((1, Pointee::Elements(1))), None];
        assert_eq!(shape_of("write"), CallShape { brings: write, answers: false, place: Place::Delegated });
        assert_eq!(shape_of("getpid"), CallShape { place: Place::Stub, ..CallShape::default() });
        assert_eq!(shape(u16::MAX), CallShape::default());
    }

    /// A child that is made may look before its parent goes on.
    #[test]
    fn calls_that_make_tasks_answer_at_once() {
        assert!(["clone", "clone3", "fork", "vfork"].iter().all(|name| !shape_of(name).answers));
    }
}
