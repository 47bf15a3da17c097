//! The data streams: each sends what it reads itself, or what reader threads have put in the queue.

use std::sync::Arc;

use crossbeam_channel::select;
use farline_spec::{Failure, FailureKind};

use super::driver::Machine;
use super::pool::Pool;
use super::producer::{Filled, PAUSE, Producer};
use super::shared::{Queue, Shared};
use crate::Outlet;

/// Sends data on stream `number` until the copy is over or the other end cannot read that stream any more.
pub(super) fn run(shared: &Arc<Shared>, number: u16, outlet: &mut dyn Outlet) -> Result<(), Failure> {
    let mut lane = Lane { number, outlet };
    match &shared.queue {
        Some(queue) if shared.choice.threads > 0 => send_queued(shared, queue, &mut lane)?,
        helped => read_and_send(shared, helped.as_ref(), &mut lane)?,
    }
    match shared.driver.is_closed(number) {
        true => Ok(()),
        false => shared.halt.outcome(),
    }
}

/// A stream and its number.
struct Lane<'a> {
    number: u16,
    outlet: &'a mut dyn Outlet,
}

/// Frames that a reader with requests of so many under way needs by itself.
pub(super) const fn frames_of_reader(depth: usize) -> usize {
    depth + 1
}

fn read_and_send(shared: &Arc<Shared>, helped: Option<&Queue>, lane: &mut Lane<'_>) -> Result<(), Failure> {
    let pool = Arc::new(Pool::new(frames_of_reader(shared.depth), shared.frame_bytes()));
    let mut producer = Producer::new(Arc::clone(shared), Arc::clone(&pool))?;
    let mut needs_flush = false;
    let lane_number = lane.number;
    let is_closed = || shared.driver.is_closed(lane_number);
    // Asked while the machine is held: asks it, and not its driver.
    let is_due = |machine: &Machine| {
        let is_queued = || helped.is_some_and(|queue| !queue.out_of.is_empty());
        machine.is_closed(lane_number) || shared.lanes.is_due() || is_queued()
    };
    while !shared.halt.is_over() {
        if is_closed() {
            return hand_back(shared, producer, &pool);
        }
        if shared.lanes.may_leave() {
            return send_begun(shared, producer, &pool, lane);
        }
        if let Some((queue, filled)) = helped.and_then(|queue| Some((queue, queue.out_of.try_recv().ok()?))) {
            shared.gauges.queued_frames.take(1);
            shared.send(filled, &queue.pool, lane)?;
            needs_flush = true;
            continue;
        }
        match producer.next()? {
            Some(filled) => {
                shared.send(filled, &pool, lane)?;
                needs_flush = true;
            }
            None => {
                if std::mem::take(&mut needs_flush) {
                    lane.outlet.flush()?;
                }
                let wait = || shared.driver.wait_for_work(PAUSE, is_due);
                shared.gauges.starved_ns.time(wait);
            }
        }
    }
    Ok(())
}

/// What `producer` has begun for a stream that is to end goes over it still; then there is nothing of that stream's anywhere.
fn send_begun(
    shared: &Shared,
    mut producer: Producer,
    pool: &Pool,
    lane: &mut Lane<'_>,
) -> Result<(), Failure> {
    producer.leave();
    while let Some(filled) = producer.next()? {
        shared.send(filled, pool, lane)?;
    }
    lane.outlet.flush()
}

/// What `producer` has begun for a stream that was given up goes over the others.
fn hand_back(shared: &Shared, mut producer: Producer, pool: &Pool) -> Result<(), Failure> {
    producer.leave();
    while let Some(filled) = producer.next()? {
        shared.hand_back(&filled)?;
        pool.put(filled.frame);
    }
    Ok(())
}

fn send_queued(shared: &Shared, queue: &Queue, lane: &mut Lane<'_>) -> Result<(), Failure> {
    let mut needs_flush = false;
    while !shared.halt.is_over() && !shared.driver.is_closed(lane.number) {
        if shared.lanes.may_leave() {
            return lane.outlet.flush();
        }
        let next = queue.out_of.try_recv().ok();
        let next = match next {
            Some(filled) => Some(filled),
            None => {
                if std::mem::take(&mut needs_flush) {
                    lane.outlet.flush()?;
                }
                shared.gauges.starved_ns.time(|| queue.wait(shared))
            }
        };
        if let Some(filled) = next {
            shared.gauges.queued_frames.take(1);
            shared.send(filled, &queue.pool, lane)?;
            needs_flush = true;
        }
    }
    Ok(())
}

/// The body of a reader thread: fills the queue until the copy is over.
pub(super) fn fill_queue(shared: &Arc<Shared>, queue: &Queue) -> Result<(), Failure> {
    let mut producer = Producer::new(Arc::clone(shared), Arc::clone(&queue.pool))?;
    while !shared.halt.is_over() {
        match producer.next()? {
            Some(filled) => queue.put(shared, filled),
            None => shared.wait_for_work(),
        }
    }
    Ok(())
}

/// The body of a helper: fills packs until the copy is over, for streams that read for themselves.
pub(super) fn help(shared: &Arc<Shared>, queue: &Queue) -> Result<(), Failure> {
    let mut producer = Producer::new(Arc::clone(shared), Arc::clone(&queue.pool))?;
    while !shared.halt.is_over() {
        match producer.next_pack() {
            Some(filled) => {
                queue.put(shared, filled);
                shared.driver.wake_readers();
            }
            None => shared.driver.wait_for_packs(PAUSE),
        }
    }
    Ok(())
}

impl Queue {
    fn put(&self, shared: &Shared, filled: Filled) {
        shared.gauges.queued_frames.add(1);
        select! {
            send(self.into, filled) -> _ => {}
            recv(shared.halt.closed()) -> _ => {}
        }
    }

    fn wait(&self, shared: &Shared) -> Option<Filled> {
        select! {
            recv(self.out_of) -> filled => filled.ok(),
            recv(shared.halt.closed()) -> _ => None,
            default(PAUSE) => None,
        }
    }
}

impl Shared {
    /// Room that frames of data need.
    pub(super) fn frame_bytes(&self) -> usize {
        // A chunk is at most as long as the longest frame.
        (self.chunk_bytes as usize).max(self.pack_bytes)
    }

    fn send(&self, filled: Filled, pool: &Pool, lane: &mut Lane<'_>) -> Result<(), Failure> {
        let Filled {
            mut frame,
            content_bytes,
            file,
            pointer,
        } = filled;
        if !self.may_carry(lane.number, &frame)? {
            pool.put(frame);
            return Ok(());
        }
        self.gauges.moved_bytes.add(content_bytes);
        if let Some(most) = self
            .most_bytes
            .filter(|most| self.gauges.moved_bytes.get() > *most)
        {
            let line = format!("the copy moves more than the {most} bytes that are allowed");
            return Err(Failure::new(FailureKind::Limit, line));
        }
        match (pointer, &file) {
            (Some(pointer), Some(file)) => self.send_straight(file, &pointer, &mut frame, lane.outlet)?,
            _ => lane.outlet.send(&mut frame)?,
        }
        pool.put(frame);
        if let Some(file) = file {
            self.ask(|machine| machine.credit(file.number, content_bytes));
        }
        Ok(())
    }
}
