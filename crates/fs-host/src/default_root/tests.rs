//! What the plan shows for which environment.

use super::*;

fn plan(cwd: &str, reach: Reach) -> RootPlan {
    let homes =
        homes_in("root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nd:x:5:5::/:/bin/false\n");
    RootPlan::new(
        &Environment { cwd: cwd.into(), home: Some("/home/me".into()), homes, lost_cwd: None, owner: (0, 0) },
        reach,
    )
}

fn layers(plan: &RootPlan) -> Vec<&str> {
    plan.layers.iter().filter_map(|layer| layer.at.to_str()).collect()
}

#[test]
fn the_current_directory_shows_unless_it_holds_a_home() {
    for (cwd, shown) in [
        ("/home/me/project", true),
        ("/srv/data", true),
        ("/tmp", true),
        ("/", false),
        ("/home", false),
        ("/home/me", false),
        ("/root", false),
        ("/home/me/.ssh", false),
        ("/home/me/.config/x", false),
        ("/run/user/1000", false),
        ("/proc/self", false),
        // Part of the root already.
        ("/usr/src", false),
        ("/etc/ssh", false),
    ] {
        let plan = plan(cwd, Reach::System);
        let expected = if shown { vec!["/", cwd] } else { vec!["/"] };
        assert_eq!(layers(&plan), expected, "{cwd}");
        assert_eq!(plan.workdir, Path::new(cwd));
        assert!(plan.layers.iter().all(|layer| !layer.options.writable));
    }
    assert_eq!(layers(&plan("/home/me", Reach::Home)), ["/", "/home/me"]);
    assert_eq!(layers(&plan("/home/me/project", Reach::Home)), ["/", "/home/me"]);
    assert_eq!(layers(&plan("/home/me", Reach::All)), ["/"]);
}

#[test]
fn secrets_and_the_rest_of_the_host_are_hidden() {
    let view = system_view();
    for hidden in ["home", "root", "run", "proc", "sys", "dev", "boot", "mnt", "srv", "tmp", "work"] {
        assert!(!view.shows(hidden.as_bytes()), "{hidden}");
    }
    let below = |path: &str| {
        path.split('/')
            .try_fold(view.clone(), |view, name| view.below(name.as_bytes()).map(|view| (*view).clone()))
    };
    let etc = below("etc").expect("a view");
    for hidden in [
        "shadow",
        "shadow-",
        "gshadow",
        "sudoers",
        "sudoers.d",
        "NetworkManager",
        "wireguard",
        "krb5.keytab",
        "machine-id",
    ] {
        assert!(!etc.shows(hidden.as_bytes()), "{hidden}");
    }
    for shown in ["passwd", "group", "ld.so.cache", "hosts", "resolv.conf", "ssl", "ssh", "alternatives"] {
        assert!(etc.shows(shown.as_bytes()), "{shown}");
    }
    assert!(!below("etc/ssl").expect("a view").shows(b"private"));
    assert!(below("etc/ssl").expect("a view").shows(b"certs"));
    assert!(!below("etc/ssh").expect("a view").shows(b"ssh_host_ed25519_key"));
    let lib = below("var/lib").expect("a view");
    assert!(lib.shows(b"dpkg") && !lib.shows(b"docker") && !below("var").expect("a view").shows(b"log"));
}

#[test]
fn each_machine_is_another() {
    assert_eq!(machine_id().len(), 33);
    assert_ne!(machine_id(), machine_id());
}
