//! The control thread: samples every link at equal intervals and writes captures to disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use farline_spec::LinkSamples;

use super::capture::Capture;
use super::command::Command;
use super::request::{EngineHandle, PipeReport, Report};
use crate::model::PipeCounters;

/// Rows that wait for someone to fetch them; beyond that the oldest are dropped, and counted.
const MAX_ROWS: usize = 1 << 20;

/// Samples between the control thread and whoever fetches them.
#[derive(Default)]
pub struct SampleBox {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    rows: LinkSamples,
    dropped_rows: u64,
}

impl SampleBox {
    /// What came since the last call.
    pub fn take(&self) -> LinkSamples {
        std::mem::take(&mut self.lock().rows)
    }

    /// Rows dropped because nobody fetched them.
    pub fn dropped_rows(&self) -> u64 {
        self.lock().dropped_rows
    }

    fn append(&self, mut rows: LinkSamples) {
        let mut held = self.lock();
        held.rows.append(&mut rows);
        let excess = held.rows.link.len().saturating_sub(MAX_ROWS);
        if excess > 0 {
            held.rows = held.rows.split_off(excess);
            held.dropped_rows += excess as u64;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        // Rows are whole after every step, so a panic elsewhere leaves nothing half done.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The control thread's state.
pub struct Control {
    /// The way to the engine.
    pub engine: EngineHandle,
    /// What it is told.
    pub commands: Receiver<Command>,
    /// Where samples go.
    pub samples: Arc<SampleBox>,
    /// Time between two samples.
    pub interval: Duration,
}

impl Control {
    /// Works until it is told to stop, or until the engine has ended.
    pub fn run(self) {
        let mut captures = HashMap::new();
        self.work(&mut captures);
        // What an engine that has ended recorded last is still to be written.
        for command in self.commands.try_iter() {
            obey(&mut captures, command);
        }
    }

    fn work(&self, captures: &mut HashMap<usize, Capture>) {
        let Ok(mut last) = self.engine.report(true) else {
            return;
        };
        // The first row is about everything since the start.
        last.at_ns = 0;
        last.pipes
            .iter_mut()
            .for_each(|pipe| pipe.counters = PipeCounters::default());
        let mut due = Instant::now() + self.interval;
        loop {
            match self.next(due) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(command) => obey(captures, command),
                Err(RecvTimeoutError::Timeout) => {
                    let Ok(report) = self.engine.report(true) else {
                        return;
                    };
                    self.samples.append(rows_between(&last, &report));
                    last = report;
                    // A late sample does not move the ones after it, and missed ones are not made up for.
                    while due <= Instant::now() {
                        due += self.interval;
                    }
                }
            }
        }
    }

    /// The next command before `due`. What is due comes first: commands may come without end while a capture is full.
    fn next(&self, due: Instant) -> Result<Command, RecvTimeoutError> {
        if due <= Instant::now() {
            return Err(RecvTimeoutError::Timeout);
        }
        self.commands.recv_deadline(due)
    }
}

fn obey(captures: &mut HashMap<usize, Capture>, command: Command) {
    match command {
        Command::Open { link, capture } => {
            captures.insert(link, capture);
        }
        Command::Chunk(chunk) => {
            if let Some(capture) = captures.get_mut(&chunk.link) {
                capture.write(chunk);
            }
        }
        Command::Close { link, reply } => {
            let end = captures.remove(&link).map(Capture::finish).unwrap_or_default();
            // Whoever asked may have given up waiting.
            let _ = reply.send(end);
        }
        Command::Stop => {}
    }
}

/// One row for each pipe.
fn rows_between(from: &Report, to: &Report) -> LinkSamples {
    let mut rows = LinkSamples::default();
    let span_us = [from.at_ns / 1000, to.at_ns / 1000];
    for (pipe, (before, after)) in from.pipes.iter().zip(&to.pipes).enumerate() {
        push_row(&mut rows, pipe, span_us, before, after);
    }
    rows
}

fn push_row(rows: &mut LinkSamples, pipe: usize, span_us: [u64; 2], before: &PipeReport, after: &PipeReport) {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    rows.link.push(whole(pipe as u64 / 2));
    rows.direction.push(whole(pipe as u64 % 2));
    rows.start_us.push(whole(span_us[0]));
    rows.end_us.push(whole(span_us[1]));
    macro_rules! differences {
        ($($name:ident),+ $(,)?) => {
            $(rows.$name.push(whole(after.counters.$name - before.counters.$name));)+
        };
    }
    differences!(
        in_packets,
        in_bytes,
        out_packets,
        out_bytes,
        tail_drop_packets,
        codel_drop_packets,
        loss_packets,
        cut_packets,
        mtu_drop_packets,
        ecn_marked_packets,
        corrupted_packets,
        duplicated_packets,
        reordered_packets,
    );
    rows.backlog_bytes.push(whole(after.state.backlog_bytes));
    rows.backlog_max_bytes.push(whole(after.backlog_max_bytes));
    rows.in_flight_packets.push(whole(after.state.in_flight_packets));
    rows.rate_bps.push(whole(after.state.rate_bps));
    rows.delay_ns.push(whole(after.state.delay_ns));
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicBool;

    use crossbeam_channel::unbounded;
    use farline_sys::wake::Waker;

    use super::*;
    use crate::relay::capture::Chunk;
    use crate::relay::request::WakeSignal;
    use crossbeam_channel::Sender;

    /// A control thread's state, with an engine that has ended.
    fn control() -> (Sender<Command>, Control) {
        let bell = Arc::new(WakeSignal {
            waker: Waker::new().unwrap(),
            stop: AtomicBool::new(false),
            failure: OnceLock::new(),
        });
        let (commands_in, commands) = unbounded();
        let control = Control {
            engine: EngineHandle::new(unbounded().0, bell),
            commands,
            samples: Arc::default(),
            interval: Duration::from_secs(1),
        };
        (commands_in, control)
    }

    fn chunk() -> Command {
        Command::Chunk(Chunk {
            link: 0,
            bytes: b"records".to_vec(),
            packets: 1,
        })
    }

    #[test]
    fn a_sample_that_is_due_comes_before_commands() {
        let (commands, control) = control();
        (0..3).for_each(|_| commands.send(chunk()).unwrap());
        let now = Instant::now();
        assert!(matches!(control.next(now), Err(RecvTimeoutError::Timeout)));
        assert!(matches!(
            control.next(now + Duration::from_secs(60)),
            Ok(Command::Chunk(_))
        ));
    }

    #[test]
    fn what_was_recorded_before_the_engine_ended_is_written() {
        let path: PathBuf = std::env::temp_dir().join(format!("farline-control-{}.pcap", std::process::id()));
        let (commands, control) = control();
        let (capture, spare) = Capture::create(&path, 96).unwrap();
        // Without the engine's end nobody takes buffers back.
        drop(spare);
        for command in [
            Command::Open { link: 0, capture },
            chunk(),
            chunk(),
            Command::Stop,
        ] {
            commands.send(command).unwrap();
        }
        control.run();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes[24..], *b"recordsrecords");
    }
}
