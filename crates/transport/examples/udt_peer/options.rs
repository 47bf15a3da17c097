//! The command line that this peer and its twin share; `--control`, `--rate`, `--initial-sequence`, `--gso` and
//! `--gro` are this one's own.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use farline_spec::unit::{BufferBytes, FlowWindowPackets, RateBps, UdtPacketBytes};
use farline_spec::{RunSpec, Transport, UdtControl, UdtOptions};
use farline_transport::udt::{SocketKind, SocketOptions};

/// What the command line says.
#[derive(Debug, Clone)]
pub struct Options {
    /// `srv`, `cli` or `rdv`.
    pub role: String,
    pub kind: SocketKind,
    /// Of each connection; 0: as many as `seconds` allow.
    pub bytes: u64,
    pub block: usize,
    pub seed: u64,
    pub connections: u64,
    pub host: IpAddr,
    pub port: u16,
    pub local_port: u16,
    pub is_constant: bool,
    pub receive_back: bool,
    /// To send for if `bytes` is 0, else the time in which all must be over.
    pub seconds: f64,
    /// Left out of the steady figures.
    pub omit_s: f64,
    pub linger: Duration,
    pub lifetime: Option<Duration>,
    pub in_order: bool,
    pub list: bool,
    spec: RunSpec,
    initial_sequence: Option<u32>,
}

impl Options {
    pub fn parse() -> Result<Self, String> {
        let mut words = std::env::args().skip(1);
        let role = words
            .next()
            .filter(|role| ["srv", "cli", "rdv"].contains(&role.as_str()));
        let mut options = Self {
            role: role.ok_or("the first word is srv, cli or rdv")?,
            kind: SocketKind::Stream,
            bytes: 0,
            block: 65_536,
            seed: 1,
            connections: 1,
            host: IpAddr::from([127, 0, 0, 1]),
            port: 0,
            local_port: 0,
            is_constant: false,
            receive_back: false,
            seconds: 60.0,
            omit_s: 0.0,
            linger: Duration::from_secs(180),
            lifetime: None,
            in_order: false,
            list: false,
            spec: RunSpec {
                transport: Transport::Udt,
                udt: Some(UdtOptions {
                    packet_bytes: UdtPacketBytes::new(1472).ok(),
                    ..UdtOptions::default()
                }),
                ..RunSpec::default()
            },
            initial_sequence: None,
        };
        while let Some(name) = words.next() {
            if !options.set_flag(&name) {
                let value = words.next().ok_or(format!("{name} goes with a value"))?;
                options.set(&name, &value)?;
            }
        }
        if options.block == 0 || options.connections == 0 {
            return Err("--block and --connections are at least 1".to_owned());
        }
        Ok(options)
    }

    fn set_flag(&mut self, name: &str) -> bool {
        match name {
            "--receive-back" => self.receive_back = true,
            "--in-order" => self.in_order = true,
            "--list" => self.list = true,
            _ => return false,
        }
        true
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--mode" => {
                self.kind = if value == "message" {
                    SocketKind::Message
                } else {
                    SocketKind::Stream
                };
            }
            "--bytes" => self.bytes = number(name, value)?,
            "--block" => self.block = number(name, value)?,
            "--seed" => self.seed = number(name, value)?,
            "--connections" => self.connections = number(name, value)?,
            "--host" => self.host = number(name, value)?,
            "--port" => self.port = number(name, value)?,
            "--local-port" => self.local_port = number(name, value)?,
            "--pattern" => self.is_constant = value == "constant",
            "--seconds" => self.seconds = number(name, value)?,
            "--omit" => self.omit_s = number(name, value)?,
            "--linger" => self.linger = Duration::from_secs_f64(number(name, value)?),
            "--ttl-ms" => self.lifetime = u64::from_str(value).ok().map(Duration::from_millis),
            "--initial-sequence" => self.initial_sequence = Some(number(name, value)?),
            _ => return self.set_transport(name, value),
        }
        Ok(())
    }

    fn set_transport(&mut self, name: &str, value: &str) -> Result<(), String> {
        let refused = |failure: farline_spec::unit::OutOfRange| format!("{name}: {failure}");
        let udt = self.spec.udt.get_or_insert_default();
        let buffer = || match number(name, value)? {
            0 => Ok(None),
            bytes => BufferBytes::new(bytes).map(Some).map_err(refused),
        };
        match name {
            "--packet" => {
                udt.packet_bytes = Some(UdtPacketBytes::new(number(name, value)?).map_err(refused)?);
            }
            "--send-buffer" => udt.send_buffer_bytes = buffer()?,
            "--receive-buffer" => udt.receive_buffer_bytes = buffer()?,
            "--udp-send-buffer" => udt.udp_send_buffer_bytes = buffer()?,
            "--udp-receive-buffer" => udt.udp_receive_buffer_bytes = buffer()?,
            "--flow-window" => {
                udt.flow_window_packets = match number(name, value)? {
                    0 => None,
                    packets => Some(FlowWindowPackets::new(packets).map_err(refused)?),
                };
            }
            "--gso" => udt.gso = value != "0",
            "--gro" => udt.gro = value != "0",
            "--control" => {
                let found = UdtControl::ALL
                    .into_iter()
                    .find(|control| control.word() == value);
                udt.congestion_control = found.ok_or(format!("--control: {value} is not known"))?;
            }
            "--rate" => self.spec.rate_bps = Some(RateBps::new(number(name, value)?).map_err(refused)?),
            _ => return Err(format!("{name} is not known")),
        }
        Ok(())
    }

    /// Options of the socket of a connection.
    pub fn socket(&self) -> SocketOptions {
        SocketOptions {
            kind: self.kind,
            initial_sequence: self.initial_sequence,
            ..SocketOptions::of(&self.spec)
        }
    }

    pub fn is_timed(&self) -> bool {
        self.bytes == 0
    }

    pub fn is_message(&self) -> bool {
        self.kind == SocketKind::Message
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name}: {value} is no value for it"))
}
