//! Who has to go when more connections wait than there are places for: shares by address and by prefix.
//!
//! Nobody who waits has proved anything, so no place is anybody's. Whoever comes gets one; if that is more than an
//! address, its prefix or all together may have, the oldest of the address with the most places gives way. Many silent
//! connections of one address so push out each other, and a client of another address is not among those who give way.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    base: IpAddr,
    bits: u8,
}

impl Prefix {
    fn new(address: IpAddr, bits: u8) -> Self {
        let base = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Ipv4Addr::from(u32::from(v4) & mask).into()
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Ipv6Addr::from(u128::from(v6) & mask).into()
            }
        };
        Self { base, bits }
    }

    /// What one host can have: an IPv4 address, an IPv6 network of 64 bits.
    pub fn of_host(address: IpAddr) -> Self {
        match address.to_canonical() {
            v4 @ IpAddr::V4(_) => Self::new(v4, 32),
            v6 @ IpAddr::V6(_) => Self::new(v6, 64),
        }
    }

    /// What one site can have: an IPv4 network of 24 bits, an IPv6 network of 48 bits.
    pub fn of_site(address: IpAddr) -> Self {
        match address.to_canonical() {
            v4 @ IpAddr::V4(_) => Self::new(v4, 24),
            v6 @ IpAddr::V6(_) => Self::new(v6, 48),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.base, self.bits) {
            (IpAddr::V4(v4), 32) => v4.fmt(to),
            (base, bits) => write!(to, "{base}/{bits}"),
        }
    }
}

/// Most places at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// For all together.
    pub total: usize,
    /// For one host: an IPv4 address, an IPv6 /64.
    pub host: usize,
    /// For one site: an IPv4 /24, an IPv6 /48.
    pub site: usize,
}

impl Shares {
    /// `total` places, of which a host may have half and a site three quarters.
    pub fn of(total: usize) -> Self {
        Self {
            total,
            host: (total / 2).max(1),
            site: (total * 3 / 4).max(1),
        }
    }
}

/// Those who wait, in the order in which they came.
#[derive(Debug)]
pub struct Crowd<T> {
    members: Vec<(IpAddr, T)>,
    hosts: HashMap<Prefix, usize>,
    sites: HashMap<Prefix, usize>,
}

impl<T> Default for Crowd<T> {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            hosts: HashMap::new(),
            sites: HashMap::new(),
        }
    }
}

impl<T> Crowd<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// How many come from the host of `address`.
    pub fn of_host(&self, address: IpAddr) -> usize {
        self.hosts.get(&Prefix::of_host(address)).copied().unwrap_or(0)
    }

    /// Adds one who comes from `address`.
    pub fn join(&mut self, address: IpAddr, member: T) {
        *self.hosts.entry(Prefix::of_host(address)).or_default() += 1;
        *self.sites.entry(Prefix::of_site(address)).or_default() += 1;
        self.members.push((address, member));
    }

    /// Takes out the one at `index`.
    pub fn remove(&mut self, index: usize) -> T {
        let (address, member) = self.members.remove(index);
        leave(&mut self.hosts, Prefix::of_host(address));
        leave(&mut self.sites, Prefix::of_site(address));
        member
    }

    /// The one at `index`.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.members.get(index).map(|(_, member)| member)
    }

    /// The one at `index`, to be changed.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.members.get_mut(index).map(|(_, member)| member)
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.members.iter().map(|(_, member)| member)
    }

    /// All of them, oldest first, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.members.iter_mut().map(|(_, member)| member)
    }

    /// Who has to go, given that the newest has just come; nobody while all keep within `shares`.
    pub fn one_too_many(&self, shares: Shares) -> Option<usize> {
        let newest = self.members.last()?.0;
        if self.of_host(newest) > shares.host {
            return self.oldest_of_host(Prefix::of_host(newest));
        }
        let site = Prefix::of_site(newest);
        if self.sites.get(&site).is_some_and(|&count| count > shares.site) {
            return self.busiest_within(site);
        }
        (self.len() > shares.total).then(|| self.busiest()).flatten()
    }

    /// The oldest of the host with the most places, in the site with the most.
    pub fn busiest(&self) -> Option<usize> {
        let site = self.first_most(&self.sites, Prefix::of_site, |_| true)?;
        self.busiest_within(site)
    }

    fn busiest_within(&self, site: Prefix) -> Option<usize> {
        let is_there = |address| Prefix::of_site(address) == site;
        let host = self.first_most(&self.hosts, Prefix::of_host, is_there)?;
        self.oldest_of_host(host)
    }

    /// The prefix that counts most; the one whose oldest came first where several do.
    fn first_most(
        &self,
        counts: &HashMap<Prefix, usize>,
        prefix_of: fn(IpAddr) -> Prefix,
        is_meant: impl Fn(IpAddr) -> bool,
    ) -> Option<Prefix> {
        let mut most = None;
        for address in self.members.iter().map(|(address, _)| *address) {
            let prefix = prefix_of(address);
            let count = counts.get(&prefix).copied().unwrap_or(0);
            if is_meant(address) && most.is_none_or(|(_, known)| count > known) {
                most = Some((prefix, count));
            }
        }
        most.map(|(prefix, _)| prefix)
    }

    /// The oldest that comes from the host of `address`.
    pub fn oldest_of(&self, address: IpAddr) -> Option<usize> {
        self.oldest_of_host(Prefix::of_host(address))
    }

    /// Where the one at `index` comes from.
    pub fn address(&self, index: usize) -> Option<IpAddr> {
        self.members.get(index).map(|(address, _)| *address)
    }

    fn oldest_of_host(&self, host: Prefix) -> Option<usize> {
        self.members
            .iter()
            .position(|(address, _)| Prefix::of_host(*address) == host)
    }
}

fn leave(counts: &mut HashMap<Prefix, usize>, prefix: Prefix) {
    if let Some(count) = counts.get_mut(&prefix) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&prefix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn crowd(from: &[&str]) -> Crowd<usize> {
        let mut crowd = Crowd::default();
        for (number, address) in from.iter().enumerate() {
            crowd.join(ip(address), number);
        }
        crowd
    }

    const SHARES: Shares = Shares {
        total: 6,
        host: 3,
        site: 5,
    };

    #[test]
    fn a_host_is_an_address_or_a_network_of_64_bits_and_a_site_is_larger() {
        let host = |text: &str| Prefix::of_host(ip(text)).to_string();
        let site = |text: &str| Prefix::of_site(ip(text)).to_string();
        assert_eq!(
            (host("192.0.2.7"), site("192.0.2.7")),
            ("192.0.2.7".into(), "192.0.2.0/24".into())
        );
        assert_eq!(host("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(host("2001:db8:1:2:3::4"), "2001:db8:1:2::/64");
        assert_eq!(site("2001:db8:1:2:3::4"), "2001:db8:1::/48");
    }

    #[test]
    fn a_host_that_takes_too_much_gives_way_to_itself() {
        let crowd = crowd(&["10.0.0.1", "10.9.0.1", "10.9.0.1", "10.9.0.1", "10.9.0.1"]);
        assert_eq!(crowd.one_too_many(SHARES), Some(1), "its own oldest");
    }

    #[test]
    fn a_site_of_many_addresses_gives_way_to_itself() {
        let crowd = crowd(&[
            "10.0.0.1", "10.9.0.1", "10.9.0.2", "10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5",
        ]);
        assert_eq!(
            crowd.one_too_many(SHARES),
            Some(2),
            "the oldest of its busiest host"
        );
    }

    #[test]
    fn who_comes_alone_pushes_out_one_of_the_many() {
        let crowd = crowd(&[
            "10.0.0.1", "10.9.0.1", "10.9.0.1", "10.9.0.1", "10.8.0.1", "10.8.0.1", "10.7.0.1",
        ]);
        assert_eq!(crowd.one_too_many(SHARES), Some(1));
    }

    #[test]
    fn within_the_shares_nobody_goes() {
        let crowd = crowd(&[
            "10.9.0.1", "10.9.0.1", "10.9.0.1", "10.9.0.2", "10.8.0.1", "10.7.0.1",
        ]);
        assert_eq!(crowd.one_too_many(SHARES), None);
        assert_eq!(Crowd::<()>::default().one_too_many(SHARES), None);
    }

    proptest! {
        /// Whatever comes and goes: the shares are kept, and whoever has fewer places than another never gives way to it.
        #[test]
        fn shares_are_kept_and_the_few_never_give_way_to_the_many(
            visitors in proptest::collection::vec((0u8..4, 0u8..4), 1..60),
        ) {
            let mut crowd = Crowd::default();
            for (network, host) in visitors {
                let address: IpAddr = Ipv4Addr::new(10, 0, network, host).into();
                crowd.join(address, address);
                if let Some(index) = crowd.one_too_many(SHARES) {
                    let victim = *crowd.get(index).unwrap();
                    let site = |of: IpAddr| crowd.sites[&Prefix::of_site(of)];
                    let fewest = crowd.of_host(victim) <= 1 && site(victim) <= 1;
                    prop_assert!(!fewest || crowd.hosts.values().all(|&count| count <= 1));
                    crowd.remove(index);
                }
                prop_assert!(crowd.len() <= SHARES.total);
                prop_assert!(crowd.hosts.values().all(|&count| count <= SHARES.host));
                prop_assert!(crowd.sites.values().all(|&count| count <= SHARES.site));
                prop_assert_eq!(crowd.hosts.values().sum::<usize>(), crowd.len());
            }
        }
    }
}
