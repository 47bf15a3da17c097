//! Hosts on one machine: network, mount and host name namespaces that exist as long as someone holds them.
//!
//! Nothing has a name in the file system: the kernel removes a host when its last descriptor and its last process
//! are gone. What needs to be undone by hand does not exist here.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::call::{check, explain};
use crate::mount;

/// What the namespaces of a host cost: no special right beyond this.
const NEEDS: &str = "a network namespace (needs root or a user namespace)";

/// The namespaces of one host. They live as long as this value, what was opened in them, and processes inside.
#[derive(Debug)]
pub struct HostNamespaces {
    /// Network: devices, addresses, routes, ports, `net.*` settings.
    pub network: OwnedFd,
    /// Mounts: `/sys` that shows the host's own devices, the host's `/etc/hosts`.
    pub mount: OwnedFd,
    /// Host name.
    pub names: OwnedFd,
    /// Why `/sys` still shows the devices of the machine, where the kernel did not allow a new one.
    pub sys_refusal: Option<String>,
}

impl HostNamespaces {
    /// Makes a host called `host_name` whose `/etc/hosts` is `hosts_file`, and runs `set_up` inside it.
    ///
    /// `set_up` runs on a thread of its own, which ends with it; what it opens stays in the host.
    ///
    /// # Errors
    /// `PermissionDenied` for a user who may not make namespaces; what `set_up` gives.
    pub fn create<T: Send>(
        host_name: &str,
        hosts_file: Option<&Path>,
        set_up: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<(Self, T)> {
        in_scratch_thread(|| {
            let sys_refusal = become_host(host_name, hosts_file)?;
            let made = set_up()?;
            Ok((Self::of_this_thread(sys_refusal)?, made))
        })
    }

    fn of_this_thread(sys_refusal: Option<String>) -> io::Result<Self> {
        let open = |name: &str| {
            let path = format!("/proc/thread-self/ns/{name}");
            File::open(&path)
                .map(OwnedFd::from)
                .map_err(|error| explain(&error, path))
        };
        Ok(Self {
            network: open("net")?,
            mount: open("mnt")?,
            names: open("uts")?,
            sys_refusal,
        })
    }

    /// Moves the calling thread into the host for good; its working directory becomes the root.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_ADMIN over the namespaces.
    pub fn enter(&self) -> io::Result<()> {
        join(&self.network, libc::CLONE_NEWNET)?;
        join(&self.names, libc::CLONE_NEWUTS)?;
        // SAFETY: takes flags only. Threads share their root and working directory; one that does may not change
        // its mounts.
        check(unsafe { libc::unshare(libc::CLONE_FS) })?;
        join(&self.mount, libc::CLONE_NEWNS)
    }

    /// Runs `work` inside the host, on a thread of its own.
    ///
    /// # Errors
    /// As [`Self::enter`], and what `work` gives.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_scratch_thread(|| {
            self.enter()?;
            work()
        })
    }
}

/// A thread that changes its namespaces is of no use afterwards, so each change has one to itself.
fn in_scratch_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("namespace".to_owned())
            .spawn_scoped(scope, work)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn become_host(host_name: &str, hosts_file: Option<&Path>) -> io::Result<Option<String>> {
    let flags = libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS;
    // SAFETY: takes flags only; none of these needs a process of one thread.
    check(unsafe { libc::unshare(flags) }).map_err(|error| explain(&error, NEEDS))?;
    set_host_name(host_name)?;
    mount::make_private()?;
    let sys_refusal = mount::renew_sys().err().map(|error| error.to_string());
    if let Some(file) = hosts_file {
        mount::put_over(file, Path::new("/etc/hosts"))?;
    }
    Ok(sys_refusal)
}

fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length are those of `name`, which lives through the call; the kernel only reads.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })
        .map(drop)
        .map_err(|error| explain(&error, format_args!("host name {name:?} (up to 64 bytes)")))
}

fn join(namespace: &OwnedFd, kind: libc::c_int) -> io::Result<()> {
    let namespace: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(namespace);
    // SAFETY: takes an open descriptor and flags; `kind` makes the kernel refuse any other sort of namespace.
    check(unsafe { libc::setns(namespace.as_raw_fd(), kind) })
        .map(drop)
        .map_err(|error| explain(&error, "entering a host (needs CAP_SYS_ADMIN)"))
}

/// Sets a kernel parameter of the calling thread's network namespace, by sysctl name (`net.ipv4.tcp_rmem`; with
/// slashes where a part has a dot in it).
///
/// # Errors
/// `InvalidInput` for what is not of the namespace (outside `net`); the kernel's, with the key: `NotFound` for a
/// parameter that this kernel has not, or has for the whole machine only.
pub fn write_sysctl(key: &str, value: &str) -> io::Result<()> {
    let path = sysctl_path(key)?;
    std::fs::write(&path, value).map_err(|error| {
        explain(
            &error,
            format_args!("sysctl {key} = {value:?} (must be a per-namespace setting)"),
        )
    })
}

/// Value of a kernel parameter of the calling thread's network namespace, without the line's end.
///
/// # Errors
/// As [`write_sysctl`].
pub fn read_sysctl(key: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(sysctl_path(key)?);
    text.map(|text| text.trim_end().to_owned())
        .map_err(|error| explain(&error, format_args!("sysctl {key}")))
}

fn sysctl_path(key: &str) -> io::Result<String> {
    let path = if key.contains('/') {
        key.to_owned()
    } else {
        key.replace('.', "/")
    };
    let fine = path.starts_with("net/") && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if fine && !path.contains('\0') {
        return Ok(format!("/proc/sys/{path}"));
    }
    let message = format!("sysctl {key}: a host can only set keys under net.");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_network_are_a_hosts_own() {
        for key in [
            "kernel.panic",
            "net/../kernel/panic",
            "net",
            "net..x",
            "/net/x",
            "vm.swappiness",
        ] {
            let error = write_sysctl(key, "1").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{key}");
        }
    }

    #[test]
    fn a_setting_that_is_not_there_is_named() {
        let error = write_sysctl("net.ipv4.no_such_setting", "1").unwrap_err();
        assert!(error.to_string().contains("net.ipv4.no_such_setting"), "{error}");
        assert_eq!(
            read_sysctl("net.ipv4.no_such_setting").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_dot_in_a_device_name_is_possible() {
        let path = sysctl_path("net/ipv4/conf/eth0.5/forwarding").unwrap();
        assert_eq!(path, "/proc/sys/net/ipv4/conf/eth0.5/forwarding");
    }
}
