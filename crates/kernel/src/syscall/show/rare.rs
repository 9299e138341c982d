//! Structures of calls that few programs make.

use abi::{IoEvent, IoUringParams, Iocb, LandlockRulesetAttr, MqAttr, Sembuf};

use super::shown;

shown! {
    Sembuf { sem_num: n num, sem_op: n op, sem_flg: x flg }
    MqAttr { mq_flags: x flags, mq_maxmsg: n maxmsg, mq_msgsize: n msgsize, mq_curmsgs: n curmsgs }
    Iocb { aio_data: x data, aio_lio_opcode: n lio_opcode, aio_fildes: n fildes, aio_buf: p buf; "..." }
    IoEvent { data: x data, obj: p obj, res: n res, res2: n res2 }
    IoUringParams { flags: n flags, sq_entries: n sq_entries, cq_entries: n cq_entries, features: n features; "..." }
    LandlockRulesetAttr {
        handled_access_fs: n handled_access_fs, handled_access_net: n handled_access_net, scoped: n scoped
    }
}
