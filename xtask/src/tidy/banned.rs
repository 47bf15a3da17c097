//! Calls that a room must not make.

use super::Complaint;
use super::checkout::{Checkout, SourceFile};
use super::code;

const RULE: &str = "banned-call";

/// Words of code, where they are banned, and why.
struct Ban {
    words: &'static [&'static str],
    applies: fn(&SourceFile) -> bool,
    /// Whether tests are held to it too.
    in_tests: bool,
    why: &'static str,
}

const BANS: [Ban; 9] = [
    Ban {
        words: &["todo!", "unimplemented!", "dbg!"],
        applies: is_rust,
        in_tests: true,
        why: "unfinished work does not land",
    },
    Ban {
        words: &["#[ignore"],
        applies: is_rust,
        in_tests: true,
        why: "a test that never runs is no test",
    },
    Ban {
        words: &["unsafe"],
        applies: |file| is_rust(file) && !file.path.starts_with("crates/sys/"),
        in_tests: true,
        why: "crates/sys is the only room with unsafe code",
    },
    Ban {
        words: &["Instant::now", "SystemTime::now"],
        applies: is_pure,
        in_tests: false,
        why: "time is an argument here",
    },
    Ban {
        words: &["TcpStream", "TcpListener", "UdpSocket"],
        applies: is_pure,
        in_tests: false,
        why: "this file must work without sockets",
    },
    Ban {
        words: &["println!", "print!", "eprintln!", "eprint!"],
        applies: is_library,
        in_tests: false,
        why: "a library returns what it has to say",
    },
    Ban {
        words: &["process::exit", "process::abort"],
        applies: is_library,
        in_tests: false,
        why: "a library returns its failure",
    },
    Ban {
        words: &["print(", "sys.exit(", "os._exit("],
        applies: |file| file.path.starts_with("python/farline/") && !file.path.contains("/cli/"),
        in_tests: false,
        why: "only the command line prints and exits",
    },
    Ban {
        words: &["breakpoint("],
        applies: |file| file.ending() == "py",
        in_tests: true,
        why: "unfinished work does not land",
    },
];

fn is_rust(file: &SourceFile) -> bool {
    file.ending() == "rs"
}

/// Code of a crate that others call; its examples and benches are programs.
fn is_library(file: &SourceFile) -> bool {
    // The one program among them prints and ends.
    file.path.starts_with("crates/")
        && file.path.contains("/src/")
        && file.path != "crates/carried/src/main.rs"
}

const PURE_ROOMS: [&str; 7] = [
    "crates/spec/",
    "crates/proto/src/",
    "crates/sim/src/",
    "crates/emulator/src/layout",
    "crates/emulator/src/model",
    "crates/emulator/src/storage/model.rs",
    "crates/emulator/src/packet",
];

/// Rooms and files that neither look at a clock nor open a socket.
fn is_pure(file: &SourceFile) -> bool {
    is_rust(file)
        && (PURE_ROOMS.iter().any(|room| file.path.starts_with(room))
            || file.path.contains("/machine/")
            || file.name() == "machine.rs")
}

/// Banned words, with their line and the reason.
pub fn complaints(checkout: &Checkout) -> Vec<Complaint> {
    let sources = checkout
        .files
        .iter()
        .filter(|file| is_rust(file) || file.ending() == "py");
    sources.flat_map(of_file).collect()
}

fn of_file(file: &SourceFile) -> Vec<Complaint> {
    let all = code::of(file);
    let outside_tests = if file.is_test() {
        String::new()
    } else {
        code::without_tests(&all)
    };
    let mut found = Vec::new();
    for ban in BANS.iter().filter(|ban| (ban.applies)(file)) {
        let text = if ban.in_tests { &all } else { &outside_tests };
        for word in ban.words {
            found.extend(code::positions(text, word).map(|at| {
                let message = format!("{word} is banned here: {}", ban.why);
                Complaint::new(&file.path, code::line_of(text, at), RULE, message)
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        complaints(&Checkout::of(&[(path, text)])).len()
    }

    #[test]
    fn unfinished_work_is_found_in_tests_too() {
        assert_eq!(
            count(
                "crates/spec/src/a.rs",
                "#[cfg(test)]\nmod tests { fn a() { todo!() } }"
            ),
            1
        );
        assert_eq!(
            count(
                "crates/spec/tests/a.rs",
                "#[ignore = \"slow\"]\n#[test]\nfn a() { dbg!(1); }"
            ),
            2
        );
        assert_eq!(count("tests/unit/test_a.py", "breakpoint()\n"), 1);
    }

    #[test]
    fn unsafe_code_has_one_room() {
        let text = "fn a() { unsafe { b() } }";
        assert_eq!(count("crates/sys/src/a.rs", text), 0);
        assert_eq!(count("crates/transport/src/a.rs", text), 1);
        assert_eq!(count("crates/transport/src/a.rs", "// unsafe\n"), 0);
    }

    #[test]
    fn machines_have_no_clock_and_no_socket() {
        let text = "fn a() { Instant::now(); UdpSocket::bind(x); }";
        assert_eq!(count("crates/session/src/machine.rs", text), 2);
        assert_eq!(count("crates/session/src/machine/client.rs", text), 2);
        assert_eq!(count("crates/proto/src/pace.rs", text), 2);
        assert_eq!(count("crates/emulator/src/model/network.rs", text), 2);
        assert_eq!(count("crates/emulator/src/relay/engine.rs", text), 0);
        assert_eq!(count("crates/session/src/driver.rs", text), 0);
    }

    #[test]
    fn libraries_neither_print_nor_exit() {
        let text = "fn a() { println!(\"x\"); std::process::exit(1); }";
        assert_eq!(count("crates/session/src/a.rs", text), 2);
        assert_eq!(count("crates/session/examples/a.rs", text), 0);
        assert_eq!(count("xtask/src/a.rs", text), 0);
        assert_eq!(
            count(
                "crates/session/src/a.rs",
                &format!("#[cfg(test)]\nmod tests {{ {text} }}")
            ),
            0
        );
        assert_eq!(count("python/farline/store/a.py", "print(1)\nsys.exit(2)\n"), 2);
        assert_eq!(count("python/farline/cli/a.py", "print(1)\n"), 0);
    }
}
