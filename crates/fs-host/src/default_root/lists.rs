//! Which names of the host the default root shows and hides.

/// Shown of `/`, with all below.
pub(super) const SYSTEM: [&str; 9] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "etc"];
/// Shown of `/var`.
pub(super) const VAR: [&str; 3] = ["var/lib/dpkg", "var/lib/rpm", "var/lib/alternatives"];

/// Hidden below `/etc`: secrets, most of which not everybody could read anyway.
pub(super) const SECRETS: [&str; 38] = [
    "shadow*",
    "gshadow*",
    "sudoers*",
    "sudo_logsrvd.conf",
    "doas.conf",
    "ssh/ssh_host_*",
    "ssh/*_key",
    "ssl/private",
    "pki/private",
    "pki/tls/private",
    "letsencrypt",
    "NetworkManager",
    "netplan",
    "wpa_supplicant",
    "wireguard",
    "openvpn",
    "ipsec.secrets",
    "ipsec.d",
    "swanctl",
    "strongswan*",
    "ppp",
    "chatscripts",
    "krb5.keytab*",
    "*.keytab",
    "security/opasswd",
    "samba",
    "cups",
    "docker",
    "kubernetes",
    "rancher",
    "libvirt",
    "credstore*",
    "mysql",
    "exim4/passwd.client",
    "postfix/sasl*",
    "davfs2",
    "cifs*",
    "machine-id",
];

/// Empty and throwaway.
pub(super) const EMPTY: [(&str, u32); 19] = [
    ("/tmp", 0o1777),
    ("/run", 0o755),
    ("/run/lock", 0o1777),
    ("/home", 0o755),
    ("/root", 0o700),
    ("/srv", 0o755),
    ("/mnt", 0o755),
    ("/media", 0o755),
    ("/boot", 0o755),
    ("/proc", 0o555),
    ("/sys", 0o555),
    ("/dev", 0o755),
    ("/var", 0o755),
    ("/var/tmp", 0o1777),
    ("/var/lib", 0o755),
    ("/var/cache", 0o755),
    ("/var/log", 0o755),
    ("/var/spool", 0o755),
    ("/var/mail", 0o755),
];

/// Host directories that are not shown as the current directory, nor anything below: sockets, devices, secrets of
/// running services.
pub(super) const NEVER: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Directories of a home that keep secrets.
pub(super) const PRIVATE: [&str; 12] = [
    ".ssh",
    ".gnupg",
    ".pki",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
    ".config",
    ".local",
    ".cache",
];
