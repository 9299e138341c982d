//! Keys and keyrings (`linux/keyctl.h`).

use crate::macros::{flags, names};

names! {
    /// A key that stands for one of the caller's keyrings.
    KeySpec: i32, "KEY_SPEC_" {
        THREAD_KEYRING = -1;
        PROCESS_KEYRING = -2;
        SESSION_KEYRING = -3;
        USER_KEYRING = -4;
        USER_SESSION_KEYRING = -5;
        GROUP_KEYRING = -6;
        REQKEY_AUTH_KEY = -7;
        REQUESTOR_KEYRING = -8;
    }

    /// Where `request_key` puts what it gets by default.
    KeyReqkeyDefl: i32, "KEY_REQKEY_DEFL_" {
        NO_CHANGE = -1;
        DEFAULT = 0;
        THREAD_KEYRING = 1;
        PROCESS_KEYRING = 2;
        SESSION_KEYRING = 3;
        USER_KEYRING = 4;
        USER_SESSION_KEYRING = 5;
        GROUP_KEYRING = 6;
        REQUESTOR_KEYRING = 7;
    }

    /// What `keyctl` does.
    KeyctlOp: i32, "KEYCTL_" {
        GET_KEYRING_ID = 0;
        JOIN_SESSION_KEYRING = 1;
        UPDATE = 2;
        REVOKE = 3;
        CHOWN = 4;
        SETPERM = 5;
        DESCRIBE = 6;
        CLEAR = 7;
        LINK = 8;
        UNLINK = 9;
        SEARCH = 10;
        READ = 11;
        INSTANTIATE = 12;
        NEGATE = 13;
        SET_REQKEY_KEYRING = 14;
        SET_TIMEOUT = 15;
        ASSUME_AUTHORITY = 16;
        GET_SECURITY = 17;
        SESSION_TO_PARENT = 18;
        REJECT = 19;
        INSTANTIATE_IOV = 20;
        INVALIDATE = 21;
        GET_PERSISTENT = 22;
        DH_COMPUTE = 23;
        PKEY_QUERY = 24;
        PKEY_ENCRYPT = 25;
        PKEY_DECRYPT = 26;
        PKEY_SIGN = 27;
        PKEY_VERIFY = 28;
        RESTRICT_KEYRING = 29;
        MOVE = 30;
        CAPABILITIES = 31;
        WATCH_KEY = 32;
    }
}

flags! {
    /// Rights on a key: eight bits each for its possessor, user, group and others (`linux/key.h`).
    KeyPerm: u32, "KEY_" {
        POS_VIEW = 0x0100_0000;
        POS_READ = 0x0200_0000;
        POS_WRITE = 0x0400_0000;
        POS_SEARCH = 0x0800_0000;
        POS_LINK = 0x1000_0000;
        POS_SETATTR = 0x2000_0000;
        USR_VIEW = 0x01_0000;
        USR_READ = 0x02_0000;
        USR_WRITE = 0x04_0000;
        USR_SEARCH = 0x08_0000;
        USR_LINK = 0x10_0000;
        USR_SETATTR = 0x20_0000;
        GRP_VIEW = 0x0100;
        GRP_READ = 0x0200;
        GRP_WRITE = 0x0400;
        GRP_SEARCH = 0x0800;
        GRP_LINK = 0x1000;
        GRP_SETATTR = 0x2000;
        OTH_VIEW = 0x01;
        OTH_READ = 0x02;
        OTH_WRITE = 0x04;
        OTH_SEARCH = 0x08;
        OTH_LINK = 0x10;
        OTH_SETATTR = 0x20;
    }
}
