//! `perf_event_open` and `bpf` (`linux/perf_event.h`, `linux/bpf.h`): as much as a trace prints.

use crate::macros::{flags, layout, names};

names! {
    /// The type of an event.
    PerfType: u32, "PERF_TYPE_" {
        HARDWARE = 0;
        SOFTWARE = 1;
        TRACEPOINT = 2;
        HW_CACHE = 3;
        RAW = 4;
        BREAKPOINT = 5;
    }

    /// What an event of type `PERF_TYPE_HARDWARE` counts.
    PerfHardware: u32, "PERF_COUNT_HW_" {
        CPU_CYCLES = 0;
        INSTRUCTIONS = 1;
        CACHE_REFERENCES = 2;
        CACHE_MISSES = 3;
        BRANCH_INSTRUCTIONS = 4;
        BRANCH_MISSES = 5;
        BUS_CYCLES = 6;
        STALLED_CYCLES_FRONTEND = 7;
        STALLED_CYCLES_BACKEND = 8;
        REF_CPU_CYCLES = 9;
    }

    /// What an event of type `PERF_TYPE_SOFTWARE` counts.
    PerfSoftware: u32, "PERF_COUNT_SW_" {
        CPU_CLOCK = 0;
        TASK_CLOCK = 1;
        PAGE_FAULTS = 2;
        CONTEXT_SWITCHES = 3;
        CPU_MIGRATIONS = 4;
        PAGE_FAULTS_MIN = 5;
        PAGE_FAULTS_MAJ = 6;
        ALIGNMENT_FAULTS = 7;
        EMULATION_FAULTS = 8;
        DUMMY = 9;
        BPF_OUTPUT = 10;
        CGROUP_SWITCHES = 11;
    }

    /// What `bpf` does.
    BpfCmd: i32, "BPF_" {
        MAP_CREATE = 0;
        MAP_LOOKUP_ELEM = 1;
        MAP_UPDATE_ELEM = 2;
        MAP_DELETE_ELEM = 3;
        MAP_GET_NEXT_KEY = 4;
        PROG_LOAD = 5;
        OBJ_PIN = 6;
        OBJ_GET = 7;
        PROG_ATTACH = 8;
        PROG_DETACH = 9;
        PROG_TEST_RUN = 10;
        PROG_GET_NEXT_ID = 11;
        MAP_GET_NEXT_ID = 12;
        PROG_GET_FD_BY_ID = 13;
        MAP_GET_FD_BY_ID = 14;
        OBJ_GET_INFO_BY_FD = 15;
        PROG_QUERY = 16;
        RAW_TRACEPOINT_OPEN = 17;
        BTF_LOAD = 18;
        BTF_GET_FD_BY_ID = 19;
        TASK_FD_QUERY = 20;
        MAP_LOOKUP_AND_DELETE_ELEM = 21;
        MAP_FREEZE = 22;
        BTF_GET_NEXT_ID = 23;
        MAP_LOOKUP_BATCH = 24;
        MAP_LOOKUP_AND_DELETE_BATCH = 25;
        MAP_UPDATE_BATCH = 26;
        MAP_DELETE_BATCH = 27;
        LINK_CREATE = 28;
        LINK_UPDATE = 29;
        LINK_GET_FD_BY_ID = 30;
        LINK_GET_NEXT_ID = 31;
        ENABLE_STATS = 32;
        ITER_CREATE = 33;
        LINK_DETACH = 34;
        PROG_BIND_MAP = 35;
        TOKEN_CREATE = 36;
        PROG_STREAM_READ_BY_FD = 37;
    }
}

flags! {
    /// Flags of `perf_event_open`.
    PerfFlags: u64, "PERF_FLAG_" {
        FD_NO_GROUP = 1;
        FD_OUTPUT = 2;
        PID_CGROUP = 4;
        FD_CLOEXEC = 8;
    }
}

layout! {
    /// `struct perf_event_attr`. Programs give its first 64 bytes or more.
    struct PerfEventAttr: 136 {
        0 event_type: PerfType,
        4 size: u32,
        8 config: u64,
        16 sample_period: u64,
        24 sample_type: u64,
        32 read_format: u64,
        /// `disabled`, `inherit` and so on, from the lowest bit up.
        40 bits: u64,
        48 wakeup_events: u32,
        52 bp_type: u32,
        56 config1: u64,
        64 config2: u64,
        72 branch_sample_type: u64,
        80 sample_regs_user: u64,
        88 sample_stack_user: u32,
        92 clockid: i32,
        96 sample_regs_intr: u64,
        104 aux_watermark: u32,
        108 sample_max_stack: u16,
        110 reserved_2: u16,
        112 aux_sample_size: u32,
        116 aux_action: u32,
        120 sig_data: u64,
        128 config3: u64,
    }
}
