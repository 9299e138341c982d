//! The change to a new image.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{AuxvKey, Errno, GUEST_TOP, MapFlags, PAGE_SIZE, Prot, Sigaltstack, Signal, UserAddr};
use platform::{GuestRange, HostCall, MapFile, PatchedProgram, Registers};
use sync::{SysError, SysResult};
use vfs::{FileDescription, Mapping};

use crate::exec::image::{Image, ImageMap, Randomness};
use crate::exec::program::{ExecArguments, Program};
use crate::exec::stack::{Stack, StackContents, arguments_limit};
use crate::mm::{Backing, Mm, MmRecord, Trampolines, Vma, VmaFlags};
use crate::resource;
use crate::task::{CurrentTask, GroupExit};

/// Stack mapped below what is written at first (Linux: `stack_expand`).
const STACK_EXPAND: u64 = 128 << 10;
/// `ADDR_NO_RANDOMIZE`.
const NO_RANDOMIZE: u32 = 0x004_0000;

impl CurrentTask {
    /// Replaces the image. Errors leave the process as it was; behind the point of no return they end it.
    pub(crate) fn exec(&mut self, exec: &ExecArguments) -> SysResult<()> {
        let program = Program::find(self, exec)?;
        let stack_limit = self.limit(resource::STACK);
        let random = match self.group().personality.load(Ordering::Relaxed) & NO_RANDOMIZE {
            0 => Randomness::from_bytes(crate::random::bytes()),
            _ => Randomness::none(),
        };
        let interpreter = program.interpreter.as_ref().map(|(file, elf)| (elf, &file.file));
        let files = [Some(&program.file), program.interpreter.as_ref().map(|(file, _)| file)];
        let patched = files.map(|file| {
            let file = &file?.file;
            Some((file.clone(), self.patched_program(file)?))
        });
        let room = |index: usize| {
            patched.get(index).and_then(Option::as_ref).map_or(0, |(_, program)| program.trampolines)
        };
        let room = (room(0), room(1));
        let image =
            Image::lay_out((&program.elf, &program.file.file), interpreter, room, random, stack_limit);
        let mut image = match image {
            Ok(image) => image,
            Err(error) => {
                self.become_only_thread()?;
                return Err(self.failed_too_late(error));
            }
        };
        let contents = StackContents {
            arguments: &program.arguments,
            environment: &exec.environment,
            filename: &program.filename,
            random: crate::random::bytes(),
            auxv: self.auxiliary_vector(&program, &image),
        };
        let stack = contents.build(&mut image.layout, arguments_limit(stack_limit))?;
        add_stack(&mut image, &stack, program.elf.executable_stack.unwrap_or(false));
        let files = open_maps(&image.maps)?;
        let trampolines = place_trampolines(&image, &patched);
        self.become_only_thread()?;
        // From here on there is nothing to go back to.
        self.tell_memory();
        if let Err(error) = self.replace_image(&program, &image, &files, &trampolines, &stack) {
            return Err(self.failed_too_late(error));
        }
        self.after_exec(program, exec);
        Ok(())
    }

    /// Behind the point of no return there is nobody to tell an error (Linux: `force_fatal_sig`).
    fn failed_too_late(&self, error: SysError) -> SysError {
        tracing::debug!(pid = self.pid(), %error, "exec failed behind the point of no return");
        self.exit_group(GroupExit::Signal { signal: Signal::SEGV, core: false });
        error
    }

    fn auxiliary_vector(&self, program: &Program, image: &Image) -> Vec<(AuxvKey, u64)> {
        let (hwcap, hwcap2) = rustix::param::linux_hwcap();
        let cred = &program.cred;
        let mut auxv = Vec::new();
        if let Some(vdso) = self.mm.space.vdso() {
            auxv.push((AuxvKey::SYSINFO_EHDR, vdso.image.0));
        }
        auxv.extend([
            (AuxvKey::MINSIGSTKSZ, self.kernel().signal_frame_size()),
            (AuxvKey::HWCAP, hwcap as u64),
            (AuxvKey::PAGESZ, PAGE_SIZE),
            (AuxvKey::CLKTCK, 100),
            (AuxvKey::PHDR, image.header_addr),
            (AuxvKey::PHENT, u64::from(program.elf.header_size)),
            (AuxvKey::PHNUM, u64::from(program.elf.header_count)),
            (AuxvKey::BASE, image.interpreter_base),
            (AuxvKey::FLAGS, 0),
            (AuxvKey::ENTRY, image.program_entry),
            (AuxvKey::UID, u64::from(cred.uid)),
            (AuxvKey::EUID, u64::from(cred.euid)),
            (AuxvKey::GID, u64::from(cred.gid)),
            (AuxvKey::EGID, u64::from(cred.egid)),
            (AuxvKey::SECURE, u64::from(program.secure)),
            (AuxvKey::HWCAP2, hwcap2 as u64),
        ]);
        auxv
    }

    /// Ends all other threads of the group and takes the leader's id (Linux: `de_thread`).
    fn become_only_thread(&mut self) -> SysResult<()> {
        let group = self.group().clone();
        let kernel = self.kernel().clone();
        self.win_exec()?;
        let alone = self.waiter.wait_killable(&[&group.events], None, || {
            (kernel.tasks.threads(group.pid).len() <= 1).then_some(())
        });
        group.signals.lock().exec_by = None;
        if let Err(end) = alone {
            group.events.wake(0);
            return Err(end.into());
        }
        kernel.tasks.lock().become_leader(&self.task);
        Ok(())
    }

    /// Makes this thread the one that execs, and has the others end (Linux: `zap_other_threads`). While another is, it
    /// waits, as for Linux's `cred_guard_mutex`: that one ends it, or fails.
    fn win_exec(&self) -> SysResult<()> {
        let group = self.group();
        let win = || {
            let tasks = self.kernel().tasks.lock();
            let mut signals = group.signals.lock();
            if signals.exit.is_some() || signals.exec_by.is_some() {
                return None;
            }
            signals.exec_by = Some(self.tid());
            // All at once: none that may still return to the guest sees that another is gone.
            self.kick_others_to_end(&tasks);
            Some(())
        };
        Ok(self.waiter.wait_killable(&[&group.events], None, win)?)
    }

    /// Whether the new image may have this host process (INVARIANTS 3.1).
    fn may_exec_in_place(&self, program: &Program) -> bool {
        let (old, new) = (&*self.cred, &program.cred);
        let same_authority = (old.uid, old.euid, old.suid, old.fsuid)
            == (new.uid, new.euid, new.suid, new.fsuid)
            && (old.gid, old.egid, old.sgid, old.fsgid) == (new.gid, new.egid, new.sgid, new.fsgid)
            && (old.permitted, old.effective) == (new.permitted, new.effective)
            && !program.unreadable
            && self.group().dumpable.load(Ordering::Relaxed) == 1;
        let sole_user = self.mm.users() == 1;
        same_authority && sole_user && self.group().authority_unchanged.load(Ordering::Relaxed)
    }

    fn replace_image(
        &mut self,
        program: &Program,
        image: &Image,
        files: &[Option<Arc<OwnedFd>>],
        trampolines: &[Trampolines],
        stack: &Stack,
    ) -> SysResult<()> {
        let in_place = self.may_exec_in_place(program);
        self.withdraw_delegations();
        if !in_place {
            let fresh =
                self.kernel().platform.spawn().map_err(|error| self.kernel().platform_failed(&error))?;
            // The old host process ends with its context.
            self.group().live_in(self.kernel(), &fresh.space);
            let context = fresh.thread.bind().map_err(|error| self.kernel().platform_failed(&error))?;
            self.set_context(context);
            self.group().authority_unchanged.store(true, Ordering::Relaxed);
        }
        let mut calls = vec![HostCall::UnmapAll];
        calls.extend(image.maps.iter().zip(files).map(|(map, fd)| map_call(map, fd.as_ref())));
        calls.extend(trampolines.iter().flat_map(Trampolines::map_calls));
        self.host_calls(&calls)?;
        let mut record = MmRecord {
            layout: image.layout,
            exe: program.file.file.path.clone(),
            deny_write: Some(program.file.deny_write.clone()),
            auxv: stack.auxv.clone(),
            trampolines: trampolines.to_vec(),
            ..MmRecord::default()
        };
        for map in &image.maps {
            record.vmas.insert(map.vma.clone());
        }
        let space = self.context.space().clone();
        add_vdso(&mut record, &space);
        let mm = Mm::new(space, record);
        let limits = *self.group().limits.lock();
        mm.apply_stack_limit(&limits);
        write_first(&mm, stack, &image.zero)?;
        self.mm.release();
        self.set_mm(mm);
        self.context.reset_fp_state()?;
        *self.context.registers_mut() = Registers::for_new_image(image.start, stack.pointer);
        Ok(())
    }

    /// What else exec changes.
    fn after_exec(&mut self, program: Program, exec: &ExecArguments) {
        let old_cred = self.cred.clone();
        if program.secure {
            self.task.parent_death_signal.store(0, Ordering::Relaxed);
        }
        self.set_dumpable_for(&program, &old_cred);
        self.set_cred(program.cred);
        self.task.shared.lock().name = program.name;
        self.profile_name();
        let handlers = self.handlers.copy();
        handlers.reset_handlers();
        self.set_handlers(handlers);
        // The flags stay (Linux: `begin_new_exec`).
        let flags = self.alternate_stack().flags;
        self.put_alternate_stack(&Sigaltstack { flags, ..Sigaltstack::default() });
        self.no_restart();
        self.clear_child_tid = UserAddr::NULL;
        self.task.robust_list.store(0, Ordering::Relaxed);
        self.unshare_files();
        for file in self.files.table.remove_cloexec() {
            self.close_description(&file);
        }
        let group = self.group().clone();
        group.has_executed.store(true, Ordering::Relaxed);
        *group.command_line.lock() = exec.arguments.clone();
        group.release_memory();
        self.kernel().timers_after_exec(self);
    }
}

/// Writes the stack and the zeros behind files' bytes, in one copy if nothing is in its way.
fn write_first(mm: &Mm, stack: &Stack, zero: &[(u64, u64)]) -> SysResult<()> {
    let len = |(start, end): &(u64, u64)| usize::try_from(end - start).unwrap_or(0);
    let mut ranges = vec![GuestRange { start: UserAddr(stack.pointer), len: stack.bytes.len() }];
    ranges.extend(zero.iter().map(|range| GuestRange { start: UserAddr(range.0), len: len(range) }));
    let mut bytes = stack.bytes.clone();
    bytes.resize(bytes.len() + zero.iter().map(len).sum::<usize>(), 0);
    let done = mm.copy_out(&bytes, &ranges);
    if done < stack.bytes.len() {
        return Err(Errno::EFAULT.into());
    }
    if done < bytes.len() {
        // A page that the file does not reach faults in the guest too, when it gets there.
        for range in zero {
            let _ = mm.write_bytes(UserAddr(range.0), &vec![0; len(range)]);
        }
    }
    Ok(())
}

/// The host files of an image's maps, opened before anything is changed.
fn open_maps(maps: &[ImageMap]) -> SysResult<Vec<Option<Arc<OwnedFd>>>> {
    let open = |map: &ImageMap| match &map.vma.backing {
        Backing::File { file, .. } => match file.ops.mapping(file, false)? {
            Mapping::Host(fd) => Ok(Some(fd)),
            Mapping::Zero => Err(Errno::ENOEXEC.into()),
        },
        Backing::Anonymous | Backing::Shared { .. } | Backing::Special(_) => Ok(None),
    };
    maps.iter().map(open).collect()
}

/// A file, and its program as it is patched.
type Patched = (Arc<FileDescription>, Arc<PatchedProgram>);

/// The trampolines of what is patched in an image, each where nothing else is.
fn place_trampolines(image: &Image, patched: &[Option<Patched>]) -> Vec<Trampolines> {
    let mut placed: Vec<Trampolines> = Vec::new();
    for (file, program) in patched.iter().flatten() {
        let is_text = |map: &&ImageMap| {
            let vma = &map.vma;
            let of_file = matches!(&vma.backing, Backing::File { file: mapped, offset }
                if Arc::ptr_eq(mapped, file) && *offset == program.offset);
            of_file && vma.prot == Prot::READ | Prot::EXEC && vma.len() == program.len
        };
        let texts = image.maps.iter().filter(is_text).map(|map| map.vma.start);
        for one in texts.filter_map(|text| Trampolines::behind(program, text)) {
            let (start, end) = (one.start, one.end());
            let free = !image.maps.iter().any(|map| start < map.vma.end && map.vma.start < end)
                && !placed.iter().any(|other| other.overlaps(start, end));
            if free {
                placed.push(one);
            }
        }
    }
    placed
}

fn map_call<'a>(map: &ImageMap, fd: Option<&'a Arc<OwnedFd>>) -> HostCall<'a> {
    let offset = match &map.vma.backing {
        Backing::File { offset, .. } => *offset,
        Backing::Anonymous | Backing::Shared { .. } | Backing::Special(_) => 0,
    };
    HostCall::Map {
        addr: UserAddr(map.vma.start),
        len: map.vma.len(),
        prot: map.vma.prot.bits(),
        flags: map.flags.bits(),
        file: fd.map(|fd| MapFile { fd: fd.as_fd(), offset }),
    }
}

fn add_stack(image: &mut Image, stack: &Stack, executable: bool) {
    let top = image.layout.stack_top;
    let start = (stack.pointer - STACK_EXPAND) / PAGE_SIZE * PAGE_SIZE;
    let prot = Prot::READ | Prot::WRITE | if executable { Prot::EXEC } else { Prot::NONE };
    image.add_map(start, top, prot, None);
    if let Some(map) = image.maps.last_mut() {
        map.flags |= MapFlags::GROWSDOWN | MapFlags::STACK;
        map.vma.flags |= VmaFlags::GROWSDOWN | VmaFlags::STACK;
    }
}

/// The host's vDSO shows in the record, above the guest's range.
fn add_vdso(record: &mut MmRecord, space: &Arc<dyn platform::AddressSpace>) {
    let Some(vdso) = space.vdso() else { return };
    for (start, end, prot, name) in [
        (vdso.vvar, vdso.image, Prot::READ, "[vvar]"),
        (vdso.image, vdso.end, Prot::READ | Prot::EXEC, "[vdso]"),
    ] {
        if start.0 >= GUEST_TOP && start < end {
            record.vmas.insert(Vma {
                start: start.0,
                end: end.0,
                prot,
                may: prot,
                flags: VmaFlags::empty(),
                backing: Backing::Special(name),
                name: None,
            });
        }
    }
}
