//! A whole host for a user who is not root. A program of one thread, which the usual test harness is not: only such
//! a one may enter a user namespace.

use std::io;
use std::net::IpAddr;

use farline_sys::interface;
use farline_sys::namespace::{HostNamespaces, read_sysctl, write_sysctl};
use farline_sys::user_namespace::{become_root, is_inside};

fn main() -> io::Result<()> {
    if let Err(error) = become_root() {
        println!("not run: {error}");
        return Ok(());
    }
    assert!(is_inside()?);
    let set_up = || {
        interface::bring_up("lo")?;
        write_sysctl("net.ipv4.tcp_wmem", "4096 16384 1073741824")?;
        interface::add_address("lo", IpAddr::from([10, 77, 0, 1]))
    };
    let (host, ()) = HostNamespaces::create("paris", None, set_up)?;
    assert_eq!(
        host.run(|| read_sysctl("net.ipv4.tcp_wmem"))?,
        "4096\t16384\t1073741824"
    );
    assert_eq!(
        host.run(|| std::fs::read_to_string("/proc/sys/kernel/hostname"))?,
        "paris\n"
    );
    match &host.sys_refusal {
        None => println!("a host with a private /sys"),
        Some(reason) => println!("a host with the machine's /sys: {reason}"),
    }
    Ok(())
}
