//! Target `paths`: operations on any path bytes in a small tree, from a root below the tree's own. Each gives a result or
//! an error; none reaches what lies outside.

use std::sync::Arc;

use abi::{AtFlags, OpenFlags};
use sync::SysResult;
use vfs::ops::{self, OpenRequest};
use vfs::{FdTable, FsContext, FsPlace, KernelCaller, Lookup, NoSpecialFiles, Path, getcwd};

use crate::Input;
use crate::machine::Names;

/// Operations of one run at most.
const MOST: usize = 64;

/// Operations, each a kind and two paths.
///
/// # Panics
/// If one leads outside, or something outside has changed.
pub fn run(bytes: &[u8]) {
    let names = Names::new();
    let (jail, outside) = tree(&names).expect("the tree can be made");
    let before = surroundings(&names);
    let (caller, files) = (KernelCaller::new(), FdTable::new());
    let mut ctx =
        FsContext::new(&names.mounts, FsPlace::at_root(jail.clone(), 0), &files, &caller, &NoSpecialFiles);
    let mut input = Input::new(bytes);
    for _ in 0..MOST {
        if input.is_empty() {
            break;
        }
        let kind = input.byte();
        let (path, other) = (path(&mut input), path(&mut input));
        if let Ok(Some(found)) = operate(&mut ctx, kind, &path, &other, &mut input) {
            check(&found, &jail, &outside);
        }
    }
    assert_eq!(before, surroundings(&names), "what lies outside has changed");
}

/// What is beside the jail, with all attributes.
fn surroundings(names: &Names) -> Vec<String> {
    let look = |path: &[u8]| {
        let stat = names.with(|ctx| ops::stat(ctx, abi::AT_FDCWD, path, AtFlags::SYMLINK_NOFOLLOW));
        format!("{:?}", stat.map(|stat| stat.attributes))
    };
    [&b"/canary"[..], b"/", b"/new", b"/a"].map(look).to_vec()
}

/// A canary, and beside it the root of all operations with links of all kinds and an overlay.
fn tree(names: &Names) -> SysResult<(Path, Path)> {
    let regular = abi::FileMode::new(abi::FileType::REG, 0o644);
    names.with(|ctx| {
        let cwd = abi::AT_FDCWD;
        ops::mknod(ctx, cwd, b"/canary", regular, 0)?;
        for dir in [&b"/jail"[..], b"/jail/a", b"/jail/a/b", b"/jail/a/b/c"] {
            ops::mkdir(ctx, cwd, dir, 0o755)?;
        }
        for (target, at) in [
            (&b"../../../.."[..], &b"/jail/a/up"[..]),
            (b"/", b"/jail/a/root"),
            (b"/canary", b"/jail/canary"),
            (b"../canary", b"/jail/out"),
            (b"self", b"/jail/self"),
            (b"a/b/../b/c/.", b"/jail/deep"),
        ] {
            ops::symlink(ctx, target, cwd, at)?;
        }
        ops::mknod(ctx, cwd, b"/jail/a/file", regular, 0)
    })?;
    names.mount(&names.overlay()?, "/jail/o")?;
    let find = |path: &[u8]| names.with(|ctx| ctx.lookup_path(abi::AT_FDCWD, path, Lookup::empty()));
    Ok((find(b"/jail")?, find(b"/canary")?))
}

/// A path: pieces that lead somewhere, or any bytes.
fn path(input: &mut Input<'_>) -> Vec<u8> {
    const PIECES: [&[u8]; 16] = [
        b"a", b"b", b"c", b"..", b".", b"/", b"up", b"root", b"canary", b"out", b"self", b"deep", b"o",
        b"dir", b"lower", b"link",
    ];
    let shape = input.byte();
    let count = usize::from(shape & 15);
    if shape & 0x80 != 0 {
        let repeat = if shape & 0x40 != 0 { 300 } else { 1 };
        return input.bytes(count).repeat(repeat);
    }
    let mut path = Vec::new();
    if shape & 0x40 != 0 {
        path.push(b'/');
    }
    for _ in 0..count % 8 {
        let piece = input.byte();
        path.extend_from_slice(PIECES[usize::from(piece & 15)]);
        if piece & 0x80 == 0 {
            path.push(b'/');
        }
    }
    path
}

/// Carries one operation out; where it led to.
fn operate(
    ctx: &mut FsContext<'_>,
    kind: u8,
    path: &[u8],
    other: &[u8],
    input: &mut Input<'_>,
) -> SysResult<Option<Path>> {
    let cwd = abi::AT_FDCWD;
    match kind % 16 {
        0 => return ctx.lookup_path(cwd, path, Lookup::FOLLOW).map(Some),
        1 => return ctx.lookup_path(cwd, path, Lookup::from_bits_retain(input.byte().into())).map(Some),
        2 | 3 => {
            let flags = u32::from(input.half()) << (input.byte() % 8);
            let request = OpenRequest::open(OpenFlags::from_bits_retain(flags), 0o644)?;
            return Ok(ops::open(ctx, cwd, path, &request)?.path.clone());
        }
        4 => {
            let how = abi::OpenHow {
                flags: input.half().into(),
                mode: 0,
                resolve: abi::ResolveFlags::from_bits_retain((input.byte() & 0x3f).into()),
            };
            return Ok(ops::open(ctx, cwd, path, &OpenRequest::openat2(&how)?)?.path.clone());
        }
        5 => ops::mkdir(ctx, cwd, path, 0o755)?,
        6 => ops::symlink(ctx, other, cwd, path)?,
        7 => ops::unlink(ctx, cwd, path)?,
        8 => ops::rmdir(ctx, cwd, path)?,
        9 => ops::rename(ctx, cwd, path, cwd, other, vfs::RenameMode::Replace)?,
        10 => ops::rename(ctx, cwd, path, cwd, other, vfs::RenameMode::Exchange)?,
        11 => ops::link(ctx, cwd, path, cwd, other, AtFlags::from_bits_retain(input.half().into()))?,
        12 => ops::truncate(ctx, path, input.byte().into())?,
        13 => {
            ops::readlink(ctx, cwd, path)?;
        }
        14 => ctx.enter(ops::chdir(ctx, path)?),
        _ => {
            ops::stat(ctx, cwd, path, AtFlags::from_bits_retain(input.half().into()))?;
        }
    }
    Ok(None)
}

fn check(found: &Path, jail: &Path, outside: &Path) {
    assert!(!Arc::ptr_eq(found.inode(), outside.inode()), "the canary was reached");
    // What was removed or moved has no place any more, or another.
    if let Ok(place) = getcwd(found, jail) {
        assert!(!place.starts_with(b"(unreachable)"), "led outside: {:?}", String::from_utf8_lossy(&place));
    }
}
