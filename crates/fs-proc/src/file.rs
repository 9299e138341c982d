//! Open files: a text, made when it is read from its start.

use std::any::Any;
use std::sync::Arc;

use abi::Errno;
use sync::{Mutex, SysResult, order};
use vfs::{Caller, FileDescription, FileOps, Inode, Seek, UserRead, UserWrite};

use crate::entry::Kind;
use crate::fd;
use crate::node::{Node, Place};

/// Bytes that a setting may be set to at most.
const MAX_SETTING: usize = 4096;

/// An open text file.
pub(crate) struct Text {
    inode: Arc<Inode>,
    state: Mutex<order::File, State>,
}

#[derive(Default)]
struct State {
    offset: u64,
    text: Option<Arc<Vec<u8>>>,
}

impl Text {
    pub(crate) fn new(inode: Arc<Inode>) -> Text {
        Text { inode, state: Mutex::default() }
    }

    fn node(&self) -> SysResult<&Node> {
        self.inode.downcast().ok_or(Errno::EINVAL.into())
    }

    fn render(&self, caller: &dyn Caller) -> SysResult<Vec<u8>> {
        let node = self.node()?;
        if let Place::Descriptor { number, info: true, .. } = node.place {
            return node.with(caller, |cx| fd::info_text(cx, number));
        }
        match node.place.entry().map(|entry| entry.kind) {
            Some(Kind::File(render) | Kind::Checked(render, _) | Kind::Setting(render, _)) => {
                node.with(caller, render)
            }
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// The text as it is seen from `offset`: anew at its start, else as it was.
    fn text(&self, caller: &dyn Caller, offset: u64) -> SysResult<Arc<Vec<u8>>> {
        if offset != 0
            && let Some(text) = self.state.lock().text.clone()
        {
            return Ok(text);
        }
        let text = Arc::new(self.render(caller)?);
        self.state.lock().text = Some(text.clone());
        Ok(text)
    }
}

impl FileOps for Text {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        let offset = self.state.lock().offset;
        let count = self.read_at(file, caller, offset, to)?;
        self.state.lock().offset = offset + count as u64;
        Ok(count)
    }

    fn read_at(
        &self,
        _: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        let text = self.text(caller, offset)?;
        let rest = usize::try_from(offset).ok().and_then(|from| text.get(from..)).unwrap_or(&[]);
        let wanted = rest.len().min(to.room());
        let put = to.put(rest.get(..wanted).unwrap_or(rest));
        if put == 0 && wanted > 0 { Err(Errno::EFAULT.into()) } else { Ok(put) }
    }

    fn write(&self, _: &FileDescription, caller: &dyn Caller, from: &mut dyn UserRead) -> SysResult<usize> {
        let node = self.node()?;
        let Some(Kind::Setting(_, store)) = node.place.entry().map(|entry| entry.kind) else {
            return Err(Errno::EIO.into());
        };
        let mut bytes = vec![0; from.left().min(MAX_SETTING)];
        let taken = from.take(&mut bytes);
        if taken < bytes.len() {
            return Err(Errno::EFAULT.into());
        }
        node.with(caller, |cx| store(cx, &bytes))?;
        Ok(taken)
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let mut state = self.state.lock();
        let new = match to {
            Seek::Set(at) => u64::try_from(at).map_err(|_| Errno::EINVAL)?,
            Seek::Current(by) => state.offset.checked_add_signed(by).ok_or(Errno::EINVAL)?,
            _ => return Err(Errno::EINVAL.into()),
        };
        state.offset = new;
        Ok(new)
    }
}
