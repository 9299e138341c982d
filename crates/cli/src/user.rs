//! `--user`: who the main program runs as, by numbers or by names of the root's own /etc/passwd and /etc/group.

use anyhow::{anyhow, bail};

/// Who the main program runs as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups: those that list the user, if it was named and no group was.
    pub groups: Vec<u32>,
    /// Its name and home directory, if it was named.
    pub named: Option<Named>,
}

/// What /etc/passwd says of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub name: String,
    pub home: String,
}

impl User {
    /// Reads `USER[:GROUP]`. `file` gives a file of the root by its path, empty if there is none. A user given by number is in
    /// the group of the same number, a named one in the groups that the files tell.
    pub(crate) fn read(text: &str, file: impl Fn(&str) -> Vec<u8>) -> anyhow::Result<User> {
        let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        if user.is_empty() || group == Some("") {
            bail!("--user {text}: USER or USER:GROUP is wanted, each a name or a number");
        }
        let mut found = match number(user) {
            Some(uid) => User { uid, gid: uid, ..User::default() },
            None => {
                let unknown = || {
                    anyhow!(
                        "--user {text}: /etc/passwd of the root has no user {user}; a number is taken as it is"
                    )
                };
                let mut found = in_passwd(&file("/etc/passwd"), user).ok_or_else(unknown)?;
                if group.is_none() {
                    found.groups = groups_of(&file("/etc/group"), user, found.gid);
                }
                found
            }
        };
        if let Some(group) = group {
            let unknown = || {
                anyhow!(
                    "--user {text}: /etc/group of the root has no group {group}; a number is taken as it is"
                )
            };
            let by_name = || in_group(&file("/etc/group"), group);
            found.gid = number(group).or_else(by_name).ok_or_else(unknown)?;
        }
        Ok(found)
    }

    pub(crate) fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }
}

/// An id; -1 is none.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| *id != u32::MAX)
}

/// The fields of each line.
fn entries(file: &[u8]) -> impl Iterator<Item = Vec<String>> {
    let lines = file.split(|byte| *byte == b'\n');
    lines.map(|line| String::from_utf8_lossy(line).split(':').map(str::to_owned).collect())
}

/// `name:password:uid:gid:gecos:home:shell`.
fn in_passwd(passwd: &[u8], name: &str) -> Option<User> {
    entries(passwd).find_map(|fields| match fields.as_slice() {
        [own, _, uid, gid, _, home, ..] if own == name => {
            let named =
                Named { name: name.into(), home: if home.is_empty() { "/".into() } else { home.clone() } };
            Some(User { uid: number(uid)?, gid: number(gid)?, groups: Vec::new(), named: Some(named) })
        }
        _ => None,
    })
}

/// `name:password:gid:members`.
fn in_group(group: &[u8], name: &str) -> Option<u32> {
    entries(group).find_map(|fields| match fields.as_slice() {
        [own, _, gid, ..] if own == name => number(gid),
        _ => None,
    })
}

/// As `initgroups`: the user's own group, and those that list it. As many as a process may have.
fn groups_of(group: &[u8], name: &str, own: u32) -> Vec<u32> {
    const MOST: usize = 65536;
    let mut groups = vec![own];
    for fields in entries(group) {
        let [_, _, gid, members, ..] = fields.as_slice() else { continue };
        let Some(gid) = number(gid).filter(|_| members.split(',').any(|member| member == name)) else {
            continue;
        };
        if !groups.contains(&gid) && groups.len() < MOST {
            groups.push(gid);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Vec<u8> {
        match path {
            "/etc/passwd" => b"root:x:0:0::/root:/bin/sh\n\nbad:x\nme:x:1000:100:Me,,:/home/me:/bin/sh\nodd:x:-1:0::/:\nlost:x:7:8:::\n".to_vec(),
            "/etc/group" => b"root:x:0:\nusers:x:100:\naudio:x:29:you,me\nmen:x:30:mee\nvideo:x:44:me".to_vec(),
            _ => Vec::new(),
        }
    }

    fn ids(text: &str) -> (u32, u32, Vec<u32>) {
        let user = User::read(text, file).unwrap();
        (user.uid, user.gid, user.groups)
    }

    #[test]
    fn users_are_numbers_or_names() {
        assert_eq!(ids("0"), (0, 0, vec![]));
        assert_eq!(ids("1234"), (1234, 1234, vec![]));
        assert_eq!(ids("1234:99"), (1234, 99, vec![]));
        assert_eq!(ids("1234:audio"), (1234, 29, vec![]));
        assert_eq!(ids("me"), (1000, 100, vec![100, 29, 44]));
        assert_eq!(ids("me:audio"), (1000, 29, vec![]));
        assert_eq!(ids("me:7"), (1000, 7, vec![]));
        assert_eq!(ids("root"), (0, 0, vec![0]));
        let home = |name| User::read(name, file).unwrap().named.unwrap().home;
        assert_eq!((home("me"), home("lost")), ("/home/me".into(), "/".into()));
        assert_eq!(User::read("1000", file).unwrap().named, None);
        for wrong in ["", ":", "me:", ":0", "nobody", "me:nogroup", "odd", "bad", "-1", "4294967295"] {
            assert!(User::read(wrong, file).is_err(), "{wrong}");
        }
    }
}
