//! Open directories of file systems that can say all they hold: /proc, devpts.

use std::any::Any;

use abi::{Errno, FileType};
use sync::{Mutex, SysResult, order};

use crate::{Caller, DirSink, FileDescription, FileOps, Seek};

/// An entry of a [`ListedDirectory`].
#[derive(Clone, Debug)]
pub struct ListedEntry {
    pub name: Vec<u8>,
    pub ino: u64,
    pub file_type: FileType,
    /// Where it stands, whatever comes and goes around it. Entries are in the order of their positions.
    pub position: u64,
}

/// An open directory whose entries are listed anew at each read; one goes on behind the position that it had reached.
pub struct ListedDirectory<List> {
    list: List,
    position: Mutex<order::File, u64>,
}

impl<List: Fn() -> SysResult<Vec<ListedEntry>>> ListedDirectory<List> {
    /// `list` gives all entries, `.` and `..` among them.
    pub fn new(list: List) -> Self {
        ListedDirectory { list, position: Mutex::new(0) }
    }
}

impl<List: Fn() -> SysResult<Vec<ListedEntry>> + Send + Sync + 'static> FileOps for ListedDirectory<List> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let mut position = self.position.lock();
        let new = match to {
            Seek::Set(at) => u64::try_from(at).map_err(|_| Errno::EINVAL)?,
            Seek::Current(by) => position.checked_add_signed(by).ok_or(Errno::EINVAL)?,
            _ => return Err(Errno::EINVAL.into()),
        };
        *position = new;
        Ok(new)
    }

    fn read_dir(&self, _: &FileDescription, _: &dyn Caller, to: &mut dyn DirSink) -> SysResult<()> {
        let from = *self.position.lock();
        let mut next = from;
        for entry in (self.list)()?.iter().filter(|entry| entry.position >= from) {
            let behind = entry.position.saturating_add(1);
            if !to.entry(&entry.name, entry.ino, entry.file_type, behind) {
                break;
            }
            next = behind;
        }
        *self.position.lock() = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelCaller;

    struct Names(Vec<Vec<u8>>, usize);

    impl DirSink for Names {
        fn entry(&mut self, name: &[u8], _: u64, _: FileType, _: u64) -> bool {
            let takes = self.0.len() < self.1;
            if takes {
                self.0.push(name.to_vec());
            }
            takes
        }
    }

    #[test]
    fn reading_goes_on_behind_what_was_taken_though_entries_go() {
        let numbers = std::sync::Arc::new(std::sync::Mutex::new(vec![1u8, 3, 5, 7]));
        let listed = numbers.clone();
        let list = move || {
            let entry = |number: &u8| ListedEntry {
                name: vec![b'0' + number],
                ino: 1,
                file_type: FileType::REG,
                position: u64::from(*number),
            };
            Ok(listed.lock().expect("not poisoned").iter().map(entry).collect())
        };
        let file = FileDescription::new(Box::new(ListedDirectory::new(list)), None, abi::OpenFlags::RDONLY);
        let read = |room| {
            let mut names = Names(Vec::new(), room);
            file.ops.read_dir(&file, &KernelCaller::new(), &mut names).expect("read");
            names.0
        };
        assert_eq!(read(2), [b"1", b"3"]);
        numbers.lock().expect("not poisoned").retain(|number| *number != 3);
        assert_eq!(read(9), [b"5", b"7"]);
        assert!(read(9).is_empty());
        assert_eq!(file.ops.seek(&file, Seek::Set(0)), Ok(0));
        assert_eq!(read(1), [b"1"]);
        assert_eq!(file.ops.seek(&file, Seek::End(0)), Err(Errno::EINVAL.into()));
    }
}
