//! Moving bytes between a file and a guest's buffers, a bounded part at a time.

use abi::{Errno, MAX_RW_COUNT};
use sync::SysResult;
use vfs::{UserRead, UserWrite};

use crate::buffer::with_buffer;

/// Reads until the destination is full or the file ends. `read` gets how many bytes came before; `back` is told of
/// bytes read that the destination did not take. An error counts only if nothing was moved.
pub(crate) fn read_out(
    to: &mut dyn UserWrite,
    mut read: impl FnMut(u64, &mut [u8]) -> SysResult<usize>,
    mut back: impl FnMut(usize),
) -> SysResult<usize> {
    let total = to.room().min(MAX_RW_COUNT);
    with_buffer(total, |buffer| {
        let mut done = 0_usize;
        while done < total {
            let want = buffer.len().min(total.saturating_sub(done));
            let Some(chunk) = buffer.get_mut(..want) else { break };
            let got = match read(done as u64, chunk) {
                Ok(got) => got,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let put = to.put(chunk.get(..got).unwrap_or_default());
            done = done.saturating_add(put);
            if put < got {
                back(got.saturating_sub(put));
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
            }
            if got < want {
                break;
            }
        }
        Ok(done)
    })
}

/// Writes up to `total` bytes of the source, until a write comes short. Likewise.
pub(crate) fn write_in(
    from: &mut dyn UserRead,
    total: usize,
    mut write: impl FnMut(u64, &[u8]) -> SysResult<usize>,
) -> SysResult<usize> {
    with_buffer(total, |buffer| {
        let mut done = 0_usize;
        while done < total {
            let want = buffer.len().min(total.saturating_sub(done));
            let Some(chunk) = buffer.get_mut(..want) else { break };
            let got = from.take(chunk);
            if got == 0 {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
            }
            let wrote = match write(done as u64, chunk.get(..got).unwrap_or_default()) {
                Ok(wrote) => wrote,
                Err(error) => {
                    from.untake(got);
                    return if done > 0 { Ok(done) } else { Err(error) };
                }
            };
            from.untake(got.saturating_sub(wrote));
            done = done.saturating_add(wrote);
            if wrote < want {
                break;
            }
        }
        Ok(done)
    })
}
