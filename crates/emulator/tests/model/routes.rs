//! Ports, addresses and paths.

use farline_emulator::layout::{Layout, Point};
use farline_emulator::model::Train;
use farline_spec::Topology;
use serde_json::{Value, json};

use crate::bed::{Bed, IP_BYTES, MS, topology};

fn named(hosts: &[&str], routers: &[&str], links: &[(&str, &str)]) -> Topology {
    let links = links.iter().enumerate().map(|(number, (a, b))| {
        let delay_s = 0.001 * (number + 1) as f64;
        json!({"name": format!("l{number}"), "a": a, "b": b, "forward": {"delay_s": delay_s}})
    });
    topology(json!({
        "name": "test",
        "hosts": hosts.iter().map(|name| json!({"name": name})).collect::<Vec<Value>>(),
        "routers": routers,
        "links": links.collect::<Vec<Value>>(),
    }))
}

#[test]
fn parallel_links_are_lanes() {
    let layout =
        Layout::new(&named(&["a", "b"], &[], &[("a", "b"), ("b", "a"), ("a", "b")])).expect("a layout");
    assert_eq!(layout.hosts[0].ports, [0, 3, 4]);
    for route in &layout.hosts[0].routes {
        let (via, to) = (&layout.ports[route.via_port], &layout.ports[route.to_port]);
        assert_eq!((via.link, &via.device), (to.link, &to.device));
    }
    assert_eq!(layout.path(3, 2), Some(vec![3]), "from its second end");
    assert_eq!(layout.path(0, 2), None, "a lane does not lead to another");
}

#[test]
fn lanes_over_a_router_join_equal_places() {
    let links = [("a", "r"), ("a", "r"), ("b", "r"), ("b", "r")];
    let layout = Layout::new(&named(&["a", "b"], &["r"], &links)).expect("a layout");
    let routes: Vec<_> = layout.hosts[0]
        .routes
        .iter()
        .map(|route| (route.to_port, route.via_port))
        .collect();
    assert_eq!(routes, [(2, 0), (3, 1)]);
    assert_eq!(
        layout.path(0, 3),
        Some(vec![0, 7]),
        "every lane leads to every port behind a router"
    );
}

#[test]
fn addresses_follow_the_links_and_are_unique() {
    let links: Vec<(&str, &str)> = vec![("a", "b"); 256];
    let layout = Layout::new(&named(&["a", "b"], &[], &links)).expect("a layout");
    assert_eq!(layout.ports[2].v4.to_string(), "10.77.0.3");
    assert_eq!(layout.ports[3].v6.to_string(), "fd77::1:2");
    assert_eq!(layout.ports[2 * 126 + 1].v4.to_string(), "10.77.0.254");
    assert_eq!(layout.ports[2 * 127].v4.to_string(), "10.77.1.1");
    for (number, port) in layout.ports.iter().enumerate() {
        assert_eq!(layout.port_of(port.v4.into()), Some(number));
        assert_eq!(layout.port_of(port.v6.into()), Some(number));
    }
    assert_eq!(layout.port_of("10.77.9.9".parse().expect("an address")), None);
}

#[test]
fn a_dumbbell_shares_its_middle() {
    let hosts = ["s1", "s2", "d1", "d2"];
    let links = [
        ("s1", "left"),
        ("s2", "left"),
        ("left", "right"),
        ("right", "d1"),
        ("right", "d2"),
    ];
    let layout = Layout::new(&named(&hosts, &["left", "right"], &links)).expect("a layout");
    assert_eq!(layout.path_between("s1", "d2"), Some(vec![0, 4, 8]));
    assert_eq!(layout.path_between("d2", "s1"), Some(vec![9, 5, 1]));
    assert_eq!(layout.path_between("s1", "s2"), Some(vec![0, 3]));
    assert_eq!(layout.path_between("s1", "nobody"), None);
    assert_eq!(layout.pipes[4].from, Point::Router(0));
    let mut bed = Bed::new(&named(&hosts, &["left", "right"], &links));
    let to = bed.layout.hosts[3].ports[0];
    assert!(bed.network.send(0, 0, to, Train::single(7, IP_BYTES)));
    bed.drain();
    assert_eq!((bed.arrivals[0].port, bed.times()), (to, vec![(1 + 3 + 5) * MS]));
}

#[test]
fn seven_sites_in_a_full_mesh_reach_each_other_by_one_link() {
    let sites = ["a", "b", "c", "d", "e", "f", "g"];
    let mut links = Vec::new();
    for (place, from) in sites.iter().enumerate() {
        links.extend(sites[place + 1..].iter().map(|to| (*from, *to)));
    }
    let mesh = named(&sites, &[], &links);
    let layout = Layout::new(&mesh).expect("a layout");
    assert_eq!((layout.ports.len(), layout.pipes.len()), (42, 42));
    let mut bed = Bed::new(&mesh);
    for from in 0..7 {
        for to in (0..7).filter(|to| *to != from) {
            let path = layout.path_between(sites[from], sites[to]).expect("a path");
            assert_eq!(path.len(), 1);
            let pipe = layout.pipes[path[0]];
            let (Point::Port(start), Point::Port(end)) = (pipe.from, pipe.to) else {
                panic!("no routers here")
            };
            assert_eq!((layout.ports[start].host, layout.ports[end].host), (from, to));
            assert!(bed.network.send(0, start, end, Train::single(0, IP_BYTES)));
        }
        // Five of a site's six links lead elsewhere: their far ports cannot be reached from here.
        assert_eq!(layout.hosts[from].routes.len(), 6);
    }
    bed.drain();
    assert_eq!(bed.arrivals.len(), 42);
    assert_eq!(bed.times().last(), Some(&(21 * MS)));
}

#[test]
fn the_shortest_path_wins_and_hosts_do_not_forward() {
    let links = [
        ("a", "r1"),
        ("r1", "r2"),
        ("r2", "b"),
        ("r1", "b"),
        ("a", "c"),
        ("c", "d"),
    ];
    let layout = Layout::new(&named(&["a", "b", "c", "d"], &["r1", "r2"], &links)).expect("a layout");
    assert_eq!(
        layout.path_between("a", "b"),
        Some(vec![0, 6]),
        "to the port that the fewest links lead to"
    );
    assert_eq!(layout.path(0, layout.hosts[1].ports[0]), Some(vec![0, 2, 4]));
    assert_eq!(layout.path_between("a", "d"), None);
}

#[test]
fn what_no_path_joins_is_not_sent() {
    let mut bed = Bed::new(&named(&["a", "b", "c"], &[], &[("a", "b"), ("b", "c")]));
    assert!(!bed.network.send(0, 0, 3, Train::single(0, IP_BYTES)));
    assert!(!bed.network.send(0, 99, 0, Train::single(0, IP_BYTES)));
    assert!(!bed.network.send(0, 0, 99, Train::single(0, IP_BYTES)));
    assert_eq!(bed.network.counters(0).in_packets, 0);
}

#[test]
fn an_end_that_is_nowhere_is_refused() {
    let mut broken = named(&["a", "b"], &[], &[("a", "b")]);
    broken.links[0].b = "x".to_owned();
    let refusal = Layout::new(&broken).expect_err("no such point");
    assert!(
        refusal
            .to_string()
            .contains("links.l0: \"x\" is not a host or router"),
        "{refusal}"
    );
}

#[test]
fn packets_larger_than_an_mtu_on_the_way_are_reported_to_their_sender() {
    let mut narrow = named(&["a", "b"], &["r"], &[("a", "r"), ("r", "b")]);
    narrow.links[0].forward = serde_json::from_value(json!({"mtu_bytes": 9000})).expect("a pipe");
    let mut bed = Bed::new(&narrow);
    assert_eq!(bed.layout.ports[0].mtu_bytes, 9000);
    let train = Train {
        last_bytes: 1_500,
        ..Train::uniform(5, 4, 9_000)
    };
    assert!(bed.network.send(0, 0, 1, train));
    bed.drain();
    assert_eq!(bed.segments(), [3], "the short last one fits");
    let reports = bed.network.take_too_big();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].from_port, reports[0].mtu_bytes), (0, 1_500));
    assert_eq!((reports[0].train.payload, reports[0].train.segments), (5, 3));
    assert_eq!(bed.network.counters(2).mtu_drop_packets, 3);
    assert_eq!(bed.network.take_too_big(), []);
}
